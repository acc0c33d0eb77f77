package contract

import (
	"fmt"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/login"
)

const (
	plenty       = 1_000_000 // units, more than any run buys
	limit        = 1000      // the maximum of a product, so that every quantity of the description is valid
	ordersEach   = 12        // in each state
	settleWithin = 30 * time.Second
	pollEvery    = 10 * time.Millisecond
)

// The products that the dictionaries of schemathesis.toml name: one for each
// strategy and each state of a sale.
const (
	async uint32 = 1 + iota
	direct
	sharded
	dualwrite
	upcoming
	paused
	soldOut
	ended
)

// openSales opens a sale in every state.
func openSales(t *testing.T, e *engine.Engine) {
	t.Helper()
	operator := e.Operator()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	for _, p := range []engine.Product{
		{ID: async, Stock: plenty},
		{ID: direct, Stock: plenty, Strategy: "direct"},
		{ID: sharded, Stock: plenty, Strategy: "sharded", Shards: 4},
		{ID: dualwrite, Stock: plenty, Strategy: "dualwrite"},
		{ID: upcoming, Stock: plenty, StartsAt: now.Add(time.Hour), EndsAt: now.Add(2 * time.Hour)},
		{ID: paused, Stock: plenty},
		{ID: soldOut},
		{ID: ended, Stock: plenty},
	} {
		p.PerUserLimit = limit
		must(operator.OpenSale(t.Context(), p))
	}
	must(operator.Pause(t.Context(), paused))
	must(operator.End(t.Context(), ended))
}

// placeOrders makes orders of a buyer in every stable state, and returns their
// numbers.
func placeOrders(t *testing.T, e *engine.Engine, name string) (numbers []string) {
	t.Helper()
	buyer, operator := e.Buyer(name), e.Operator()
	move := map[string]func(no string) error{
		"pending":   func(string) error { return nil },
		"cancelled": func(no string) error { _, err := buyer.Cancel(t.Context(), no); return err },
		"paid":      func(no string) error { return pay(t, e, buyer, no) },
		"refunded": func(no string) error {
			if err := pay(t, e, buyer, no); err != nil {
				return err
			}
			_, err := operator.Refund(t.Context(), no)
			return err
		},
	}
	for _, status := range []string{"pending", "cancelled", "paid", "refunded"} {
		for i := range ordersEach {
			no, err := buyer.Buy(t.Context(), []uint32{async, direct, sharded, dualwrite}[i%4], engine.Purchase{Quantity: 1, Ref: fmt.Sprint("cart-", i)})
			if err != nil {
				t.Fatal(err)
			}
			await(t, buyer, no, "pending")
			if err := move[status](no); err != nil {
				t.Fatalf("order %s to be %s: %v", no, status, err)
			}
			numbers = append(numbers, no)
		}
	}
	return numbers
}

func pay(t *testing.T, e *engine.Engine, buyer *engine.Buyer, no string) error {
	order, err := buyer.Order(t.Context(), no)
	if err != nil {
		return err
	}
	return e.Notify(t.Context(), engine.Notice{OrderNo: no, TradeNo: "T-" + no, AmountCents: order.AmountCents})
}

// await waits until a buyer's order has a status.
func await(t *testing.T, buyer *engine.Buyer, no, status string) {
	t.Helper()
	for deadline := time.Now().Add(settleWithin); ; {
		order, err := buyer.Order(t.Context(), no)
		if err == nil && order.Status == status {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("order %s is %q (%v), not %s", no, order.Status, err, status)
		}
		<-time.After(pollEvery)
	}
}

// bearer is a buyer's token.
func bearer(t *testing.T, name string) string {
	t.Helper()
	token, err := login.Token([]byte(engine.JWTSecret), name, time.Now().Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return token
}
