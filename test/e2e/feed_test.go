package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"

	"seckill/test/engine"
)

func TestOrderStream_ShowsEachStatusFromQueuedToRefunded(t *testing.T) {
	t.Parallel()
	e := start(t, map[string]string{"worker.batch_wait": "4s"}) // long enough to see the order queued, on a busy machine
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	ann := e.Buyer("ann")
	no, err := claim(t, ann, 1, engine.Purchase{Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := follow(t, e, e.ShopURL+"/api/v1/orders/"+no+"/events", signedIn(t, "ann"))
	defer s.close()
	see := func(want string) {
		t.Helper()
		if got := s.status(); got != want {
			t.Fatalf("the stream says %s, want %s", got, want)
		}
	}
	see("queued")
	see("pending")
	pay(t, e, await(t, ann, no, "pending"))
	see("paid")
	if _, err := e.Operator().Refund(t.Context(), no); err != nil {
		t.Fatal(err)
	}
	see("refunded")
	if name, data, more := s.read(); more {
		t.Errorf("after the end came %s %s", name, data)
	}
	// A stream is for its buyer alone. An unknown order has no stream.
	for _, buyer := range []string{"bob", "Ann"} {
		if got := send(t, e, http.MethodGet, e.ShopURL+"/api/v1/orders/"+no+"/events", signedIn(t, buyer), ""); got.Status != http.StatusNotFound {
			t.Errorf("%s follows ann's order: %d %s", buyer, got.Status, got.Text)
		}
	}
}

func TestStatsStream_ShowsChangingFigures(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	s := follow(t, e, e.AdminURL+"/admin/v1/stats/stream", operating("li.na"))
	defer s.close()
	beat := func() api.Stats {
		t.Helper()
		name, data := s.next()
		var board struct {
			NowMS    int64       `json:"now_ms"`
			Products []api.Stats `json:"products"`
			Failed   []uint32    `json:"failed"`
		}
		if err := json.Unmarshal([]byte(data), &board); err != nil || name != "stats" || len(board.Products) != 1 || len(board.Failed) > 0 {
			t.Fatalf("beat %q: %s (%v)", name, data, err)
		}
		if age := time.Since(time.UnixMilli(board.NowMS)); age < -time.Second || age > 5*time.Second {
			t.Errorf("the beat is %s old", age)
		}
		return board.Products[0]
	}
	if first := beat(); first.Ledger.Available != 5 {
		t.Errorf("first beat %+v", first)
	}
	buy(t, e.Buyer("ann"), 1, engine.Purchase{Quantity: 1})
	for last := beat(); last.Store.Pending != 1; last = beat() {
	}
}

// It reads the feed in small pages while a crowd buys.
func TestEventFeed_IsCompleteAndInOrder(t *testing.T) {
	t.Parallel()
	overSome(t, eventFeedIsCompleteAndInOrder)
}

func eventFeedIsCompleteAndInOrder(t *testing.T, w way) {
	e := w.start(t, map[string]string{"worker.batch_size": "7"})
	const buyers = 60
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: buyers}))
	var mu sync.Mutex
	numbers := map[string]bool{}
	var crowd sync.WaitGroup
	for i := range buyers {
		crowd.Go(func() {
			no, err := claim(t, e.Buyer(fmt.Sprintf("b-%d", i)), 1, engine.Purchase{Quantity: 1, Ref: fmt.Sprintf("cart-%d", i)})
			if err != nil {
				t.Errorf("buy: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			numbers[no] = true
		})
	}
	feed := &feed{t: t, engine: e}
	eventually(t, "all orders are in the feed", func() bool { feed.read(); return feed.count("order.confirmed") == buyers })
	crowd.Wait()
	for _, event := range feed.events {
		if event.Event == "order.confirmed" && (!numbers[event.OrderNo] || event.Buyer == "" || event.Ref == "" || *event.AmountCents != price) {
			t.Errorf("event %+v", event)
		}
	}
	winner, loser := feed.of("order.confirmed", 0), feed.of("order.confirmed", 1)
	pay(t, e, await(t, e.Buyer(winner.Buyer), winner.OrderNo, "pending"))
	if _, err := e.Buyer(loser.Buyer).Cancel(t.Context(), loser.OrderNo); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Operator().Refund(t.Context(), winner.OrderNo); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sale's start is in the feed", func() bool { feed.read(); return feed.count("sale.started") == 1 })
	if _, err := e.Operator().End(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sale's end is in the feed", func() bool { feed.read(); return feed.count("sale.ended") == 1 })
	for kind, want := range map[string]int{
		"sale.created": 1, "sale.started": 1, "sale.sold_out": 1, "sale.back_in_stock": 1, "refund.required": 1, "order.confirmed": buyers, "order.paid": 1, "order.cancelled": 1, "order.refunded": 1, "order.failed": 0,
	} {
		if got := feed.count(kind); got != want {
			t.Errorf("%d events %s, want %d", got, kind, want)
		}
	}
	if cancelled := feed.of("order.cancelled", 0); cancelled.OrderNo != loser.OrderNo || cancelled.Reason != "by_buyer" {
		t.Errorf("event %+v", cancelled)
	}
	if ended, want := feed.of("sale.ended", 0), fmt.Sprintf(`{"offered":%d,"stock":2,"pending":%d,"paid":0,"cancelled":1,"failed":0,"refunded":1,"returned_units":2}`, buyers, buyers-2); string(ended.Data) != want {
		t.Errorf("sale.ended has %s, want %s", ended.Data, want)
	}
	var refund seckill.RefundData
	required := feed.of("refund.required", 0)
	if err := json.Unmarshal(required.Data, &refund); err != nil || required.OrderNo != winner.OrderNo || refund.AmountCents != price || refund.Reason != "operator" {
		t.Errorf("event %+v with %s (%v)", required, required.Data, err)
	}
	eventually(t, "the refund is settled", func() bool { feed.read(); return feed.count("refund.settled") == 1 })
	again := feedFrom(t, e)
	if !slices.EqualFunc(again.events, feed.events, func(a, b api.Event) bool { return a.ID == b.ID && a.Event == b.Event && a.OrderNo == b.OrderNo }) {
		t.Error("read again from the beginning, the feed is another one")
	}
}

// feed follows the event feed page by page.
type feed struct {
	t      *testing.T
	engine *engine.Engine
	after  int64
	events []api.Event
}

func feedFrom(t *testing.T, e *engine.Engine) *feed {
	f := &feed{t: t, engine: e}
	f.read()
	return f
}

// read reads to the present end.
func (f *feed) read() {
	f.t.Helper()
	for {
		got := send(f.t, f.engine, http.MethodGet, fmt.Sprintf("%s/admin/v1/events?limit=9&after=%d", f.engine.AdminURL, f.after), operating("x"), "")
		var page struct {
			Events []api.Event `json:"events"`
			Next   int64       `json:"next"`
		}
		if err := json.NewDecoder(strings.NewReader(got.Text)).Decode(&page); err != nil || got.Status != http.StatusOK {
			f.t.Fatalf("feed: %d %s", got.Status, got.Text)
		}
		for _, event := range page.Events {
			if event.ID <= f.after || event.V != 1 || event.ProductID != 1 || event.At.Time().IsZero() {
				f.t.Errorf("after %d came %+v", f.after, event)
			}
			f.after = event.ID
		}
		f.events = append(f.events, page.Events...)
		if page.Next != f.after {
			f.t.Errorf("next is %d after %d", page.Next, f.after)
		}
		if len(page.Events) == 0 {
			return
		}
	}
}

func (f *feed) count(kind string) (n int) {
	for _, event := range f.events {
		if string(event.Event) == kind {
			n++
		}
	}
	return n
}

// of is the nth event of a kind.
func (f *feed) of(kind string, n int) api.Event {
	f.t.Helper()
	for _, event := range f.events {
		if string(event.Event) == kind {
			if n == 0 {
				return event
			}
			n--
		}
	}
	f.t.Fatalf("no event %s", kind)
	return api.Event{}
}
