package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"

	"seckill/test/engine"
)

// Every answer is final, and the units add up (I1, I2, I7).
func TestPurchase_CrowdGetsExactlyTheStock(t *testing.T) {
	t.Parallel()
	overEach(t, purchaseCrowdGetsExactlyTheStock)
}

func purchaseCrowdGetsExactlyTheStock(t *testing.T, w way) {
	e := w.start(t, nil)
	const units, buyers, atOnce = 50, 200, 16
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: units}))
	var mu sync.Mutex
	answers := map[seckill.Code]int{}
	var crowd sync.WaitGroup
	for first := range atOnce {
		crowd.Go(func() {
			for i := first; i < buyers; i += atOnce {
				_, err := claim(t, e.Buyer(fmt.Sprintf("b-%d", i)), 1, engine.Purchase{Quantity: 1})
				if !engine.Answered(err) {
					t.Errorf("no answer: %v", err)
				}
				mu.Lock()
				answers[engine.CodeOf(err)]++
				mu.Unlock()
			}
		})
	}
	crowd.Wait()
	if answers[""] != units || answers[seckill.CodeSoldOut] != buyers-units {
		t.Errorf("answers %v", answers)
	}
	settled(t, e, 1, "all units are orders", func(f api.Stats) bool {
		return f.Store.Pending == units && f.Store.Stock == 0 && reserved(f) == units && free(f) == 0
	})
	balanced(t, e, 1)
}

func TestPurchase_BuyerIDsAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 20})
	for _, name := range []string{
		"bob", "Bob", "BOB", "bob ", "bób", "bo\u0301b", "李娜", "🛒", strings.Repeat("x", 64), "a/b?c=d&e%2f", `"quoted\"`, "<b>", "0", "null", "'; DROP TABLE tb_seckill_order; --",
	} {
		b := e.Buyer(name)
		no := buy(t, b, 1, engine.Purchase{Quantity: 1, Ref: name})
		_, err := b.Buy(t.Context(), 1, engine.Purchase{Quantity: 1})
		refused(t, "buy twice", err, seckill.CodeAlreadyPurchased)
		orders, err := e.Operator().Orders(t.Context(), url.Values{"buyer": {name}})
		if err != nil || len(orders) != 1 || orders[0].OrderNo != no || orders[0].Buyer != name || orders[0].Ref != name {
			t.Errorf("orders of %q: %+v (%v)", name, orders, err)
		}
	}
	balanced(t, e, 1)
}

// A change of the price after the 202 does not change the order.
func TestPurchase_AcceptedOrderKeepsItsPrice(t *testing.T) {
	t.Parallel()
	overSome(t, purchaseAcceptedOrderKeepsItsPrice)
}

func purchaseAcceptedOrderKeepsItsPrice(t *testing.T, w way) {
	e := w.start(t, map[string]string{"worker.batch_wait": "1s"})
	openSale(t, e, w.product(engine.Product{ID: 1, Name: "Phone", Stock: 5, PerUserLimit: 2}))
	ann := e.Buyer("ann")
	no, err := claim(t, ann, 1, engine.Purchase{Quantity: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := send(t, e, http.MethodPatch, e.AdminURL+"/admin/v1/products/1", operating("li.na"), `{"price_cents":999,"name":"Phone 2"}`)
	if got.Status != http.StatusOK {
		t.Fatalf("patch: %d %s", got.Status, got.Text)
	}
	order := await(t, ann, no, "pending")
	if order.AmountCents != 2*price || order.ProductName != "Phone" {
		t.Errorf("the promised order is now %+v", order)
	}
	pay(t, e, order)
	await(t, ann, no, "paid")
	bob := e.Buyer("bob")
	if order := await(t, bob, buy(t, bob, 1, engine.Purchase{Quantity: 1}), "pending"); order.AmountCents != 999 || order.ProductName != "Phone 2" {
		t.Errorf("the next order is %+v", order)
	}
	balanced(t, e, 1)
}

func TestPayment_FreeOrderIsPaidWithZero(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	now := time.Now()
	// OpenSale would set a price.
	if _, err := e.Operator().Create(t.Context(), engine.Product{ID: 1, Name: "gift", Stock: 5, StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Operator().Preheat(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ann := e.Buyer("ann")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1})
	pressPay(t, e, ann, no)
	await(t, ann, no, "paid")
	balanced(t, e, 1)
}

// Open streams, idle connections and half a request do not delay a stop. Its
// exit code is 0.
func TestStop_DoesNotWaitForStreamsAndIdleClients(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	no := buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	order := follow(t, e, e.ShopURL+"/api/v1/orders/"+no+"/events", signedIn(t, "ann"))
	defer order.close()
	order.next()
	board := follow(t, e, e.AdminURL+"/admin/v1/stats/stream", operating("x"))
	defer board.close()
	board.next()
	idle := dial(t, e)
	if err := idle.write("GET /api/v1/time HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	idle.answer()
	if err := dial(t, e).write("GET /api/v1/time HTTP/1.1\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e.MustStop()
	// The engine waits for the rest of a request for up to 10 s.
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	if _, _, more := order.read(); more {
		t.Error("the order's stream is still open")
	}
	e.Start()
	if got, err := e.Buyer("ann").Order(t.Context(), no); err != nil || got.Status != "pending" {
		t.Errorf("after the stop: %+v (%v)", got, err)
	}
}

// The pages list the newest orders first.
func TestOrders_PagesHaveNoGaps(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"worker.batch_wait": "100ms"})
	openSale(t, e, engine.Product{ID: 1, Stock: 50, PerUserLimit: 50})
	ann := e.Buyer("ann")
	var want []string
	for range 11 {
		no, err := ann.Buy(t.Context(), 1, engine.Purchase{Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, no)
	}
	slices.Sort(want) // two numbers of one millisecond have no other order
	slices.Reverse(want)
	// Some orders are rows by now and others are still queued: the list has them
	// all.
	var got []string
	for before := ""; ; {
		page := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/orders?limit=4"+before, signedIn(t, "ann"), "")
		orders := decode[struct{ Orders []api.Order }](t, page.Text).Orders
		for _, order := range orders {
			got = append(got, order.OrderNo)
		}
		if len(orders) == 0 {
			break
		}
		before = "&before=" + got[len(got)-1]
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed %v, bought %v", got, want)
	}
}
