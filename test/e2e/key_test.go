package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// A repeated Idempotency-Key gets the same 202 and the same order, also after the
// sale is sold out, the order is cancelled, or the engine restarts.
func TestKey_RepeatReturnsSameOrder(t *testing.T) {
	t.Parallel()
	overEach(t, keyRepeatReturnsSameOrder)
}

func keyRepeatReturnsSameOrder(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 2}))
	ann, bob := e.Buyer("ann"), e.Buyer("bob")
	no := buy(t, ann, 1, engine.Purchase{Quantity: 1, Key: "press-1"})
	again := func(when string) {
		t.Helper()
		if got, err := claim(t, ann, 1, engine.Purchase{Quantity: 1, Key: "press-1"}); err != nil || got != no {
			t.Errorf("%s the key gave %q (%v), not %q", when, got, err, no)
		}
	}
	again("while pending")
	other := buy(t, bob, 1, engine.Purchase{Quantity: 1, Key: "press-1"})
	if other == no {
		t.Error("two buyers' keys met")
	}
	_, err := claim(t, e.Buyer("cat"), 1, engine.Purchase{Quantity: 1, Key: "press-1"})
	refused(t, "buy a sold unit", err, seckill.CodeSoldOut)
	again("when sold out")
	if _, err := ann.Cancel(t.Context(), no); err != nil {
		t.Fatal(err)
	}
	again("after a cancel")
	settled(t, e, 1, "the repeated key bought nothing", func(f api.Stats) bool {
		return free(f) == 1 && f.Store.Cancelled == 1 && f.Store.Pending == 1
	})
	await(t, ann, no, "cancelled")
	e.MustStop()
	e.Start()
	again("after a restart")
	if second := buy(t, ann, 1, engine.Purchase{Quantity: 1, Key: "press-2"}); second == no {
		t.Error("a new key found the old order")
	}
	again("after a second purchase")
	balanced(t, e, 1)
}

// Keys belong to the limit group. If a shop uses one key for a whole basket,
// the second product gets an error and not the order of the first, also after
// the first sale has ended.
func TestKey_BelongsToOneProductOfTheLimitGroup(t *testing.T) {
	t.Parallel()
	overEach(t, keyBelongsToOneProductOfTheLimitGroup)
}

func keyBelongsToOneProductOfTheLimitGroup(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 30, Stock: 10, PerUserLimit: 3}))
	openSale(t, e, w.product(engine.Product{ID: 31, Stock: 10, PerUserLimit: 3, LimitGroup: 30}))
	ann, basket := e.Buyer("ann"), engine.Purchase{Quantity: 1, Key: "basket"}
	no := buy(t, ann, 30, basket)
	second := func() {
		t.Helper()
		_, err := claim(t, ann, 31, basket)
		refusal := refused(t, "another product under the key of the first", err, seckill.CodeBadRequest)
		if !strings.Contains(refusal.Detail, no) || !strings.Contains(refusal.Detail, "product 30") {
			t.Errorf("the refusal is %+v", refusal.Document)
		}
	}
	second()
	if _, err := e.Operator().End(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	second()
	settled(t, e, 31, "nothing is sold", func(f api.Stats) bool { return reserved(f) == 0 && free(f) == 10 })
	buy(t, ann, 31, engine.Purchase{Quantity: 1, Key: "basket-2"})
	balanced(t, e, 30)
	balanced(t, e, 31)
}

// A double click is one purchase.
func TestKey_ConcurrentRequestsMakeOneOrder(t *testing.T) {
	t.Parallel()
	overEach(t, keyConcurrentRequestsMakeOneOrder)
}

func keyConcurrentRequestsMakeOneOrder(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 100, PerUserLimit: 50}))
	ann := e.Buyer("ann")
	var mu sync.Mutex
	numbers := map[string]bool{}
	var crowd sync.WaitGroup
	for range 32 {
		crowd.Go(func() {
			no, err := claim(t, ann, 1, engine.Purchase{Quantity: 1, Key: "click"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("click: %v", err)
			}
			numbers[no] = true
		})
	}
	crowd.Wait()
	if len(numbers) != 1 {
		t.Errorf("orders %v", numbers)
	}
	settled(t, e, 1, "one unit is sold", func(f api.Stats) bool { return reserved(f) == 1 && f.Store.Pending == 1 })
}

func TestBuyerLimit_RefusalNamesAllOrders(t *testing.T) {
	t.Parallel()
	overEach(t, buyerLimitRefusalNamesAllOrders)
}

func buyerLimitRefusalNamesAllOrders(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 1, Stock: 10, PerUserLimit: 3}))
	ann := e.Buyer("ann")
	first := buy(t, ann, 1, engine.Purchase{Quantity: 2})
	_, err := claim(t, ann, 1, engine.Purchase{Quantity: 2})
	refusal := refused(t, "buy above the limit", err, seckill.CodeAlreadyPurchased)
	if refusal.OrderNo != first || !slices.Equal(refusal.OrderNos, []string{first}) {
		t.Errorf("the refusal is %+v", refusal.Document)
	}
	second := buy(t, ann, 1, engine.Purchase{Quantity: 1})
	_, err = claim(t, ann, 1, engine.Purchase{Quantity: 1})
	refusal = refused(t, "buy above the limit", err, seckill.CodeAlreadyPurchased)
	if refusal.OrderNo != second || !slices.Equal(refusal.OrderNos, []string{second, first}) {
		t.Errorf("the refusal is %+v, want %s and %s", refusal.Document, second, first)
	}
	orders, err := ann.Orders(t.Context())
	if err != nil || len(orders) != 2 || orders[0].OrderNo != second || orders[1].OrderNo != first {
		t.Errorf("the buyer's list: %+v (%v)", orders, err)
	}
	for _, quantity := range []int{-1, 0, 4, 1000, 1001, 1 << 40} {
		_, err = claim(t, e.Buyer("bob"), 1, engine.Purchase{Quantity: quantity})
		refused(t, "a quantity out of bounds", err, seckill.CodeBadRequest)
	}
	if _, err := ann.Cancel(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	settled(t, e, 1, "the mark is back", func(f api.Stats) bool { return reserved(f) == 1 })
	buy(t, ann, 1, engine.Purchase{Quantity: 2})
	balanced(t, e, 1)
}

func TestBuyerLimit_IsSharedByLimitGroup(t *testing.T) {
	t.Parallel()
	overEach(t, buyerLimitIsSharedByLimitGroup)
}

func buyerLimitIsSharedByLimitGroup(t *testing.T, w way) {
	e := w.start(t, nil)
	openSale(t, e, w.product(engine.Product{ID: 41, Stock: 5, PerUserLimit: 2}))
	openSale(t, e, w.product(engine.Product{ID: 42, Stock: 5, PerUserLimit: 2, LimitGroup: 41}))
	openSale(t, e, w.product(engine.Product{ID: 43, Stock: 5, PerUserLimit: 2}))
	ann := e.Buyer("ann")
	large := buy(t, ann, 41, engine.Purchase{Quantity: 1})
	small := buy(t, ann, 42, engine.Purchase{Quantity: 1})
	for _, size := range []uint32{41, 42} {
		_, err := claim(t, ann, size, engine.Purchase{Quantity: 1})
		refusal := refused(t, "a third shoe", err, seckill.CodeAlreadyPurchased)
		if !slices.Equal(refusal.OrderNos, []string{small, large}) {
			t.Errorf("the refusal is %+v", refusal.Document)
		}
	}
	buy(t, ann, 43, engine.Purchase{Quantity: 2}) // a product of its own
	buy(t, e.Buyer("Ann"), 41, engine.Purchase{Quantity: 2})
	if _, err := ann.Cancel(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	settled(t, e, 42, "the mark is back", func(f api.Stats) bool { return reserved(f) == 0 })
	buy(t, ann, 41, engine.Purchase{Quantity: 1})
	for _, id := range []uint32{41, 42, 43} {
		balanced(t, e, id)
	}
}
