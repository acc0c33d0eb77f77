package browser_test

import (
	"context"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

func TestWinnerPays(t *testing.T) {
	shop := open(t, phone(3), nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.buy()
	s.Until(`/^(30:00|29:5\d)$/.test(document.querySelector('.left').textContent)`)
	no := s.order()
	amount := browser.Eval[string](s.Tab, `document.querySelector('#pay-sandbox').textContent.replace('Pay ', '')`)
	s.Click("#pay-sandbox")
	s.Until(`location.pathname.includes('sandbox') && document.querySelector('form button') !== null`)
	s.UntilText("main", amount) // written as on the page
	s.Click("form button")
	s.UntilText("#order h2", "Thank you!")
	s.route("/orders")
	s.UntilText(".order-card .badge", "Paid")
	s.visit(1)
	s.UntilText("#buy", "View my order")
	if order, err := shop.Buyer("alice").Order(context.Background(), no); err != nil || order.Status != "paid" {
		t.Errorf("the order is %q, %v", order.Status, err)
	}
}

func TestLoserIsToldTheTruth(t *testing.T) {
	shop := open(t, phone(1), nil)
	winner := shop.Buyer("bob")
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.Until(isLit)
	if _, err := winner.Buy(context.Background(), 1, engine.Purchase{Quantity: 1}); err != nil {
		t.Fatal(err)
	}
	s.Click("#buy")
	s.UntilText("#buy", "Sold out")
	s.UntilText("#message", "Everything is taken for now.")
	s.Until(isDark)
	s.route("/orders")
	s.UntilText("#main", "No orders yet.")
}

func TestReturnedUnitLightsTheButtonAgain(t *testing.T) {
	ctx := context.Background()
	shop := open(t, phone(1), nil)
	winner := shop.Buyer("bob")
	no, err := winner.Buy(ctx, 1, engine.Purchase{Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	waitStatus(t, winner, no, "pending")
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.UntilText("#buy", "Sold out")
	s.UntilText("#message", "come back, until ") // bob may still not pay
	if _, err := winner.Cancel(ctx, no); err != nil {
		t.Fatal(err)
	}
	s.Until(isLit) // by itself
	s.UntilText("#announce", "A unit has come back.")
	s.buy()
}

// waitStatus waits until an order has a status.
func waitStatus(t *testing.T, buyer *engine.Buyer, no, status string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), browser.StepDeadline)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		order, err := buyer.Order(ctx, no)
		if err == nil && string(order.Status) == status {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("order %s is %q, not %q: %v", no, order.Status, status, err)
		}
	}
}

func TestCancelledOrderCanBeBoughtAgain(t *testing.T) {
	shop := open(t, phone(1), nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.buy()
	first := s.order()
	s.Click("#cancel")
	s.Click("#answer-yes")
	s.UntilText("#order h2", "Order cancelled")
	s.visit(1)
	s.buy()
	if second := s.order(); second == first {
		t.Errorf("both orders are %s", first)
	}
}

func TestOperatorsPauseAndEndAreSaid(t *testing.T) {
	ctx := context.Background()
	shop := open(t, phone(5), nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.Until(isLit)
	if _, err := shop.Operator().Pause(ctx, 1); err != nil {
		t.Fatal(err)
	}
	s.Click("#buy")
	s.UntilText("#buy", "Paused")
	if _, err := shop.Operator().Resume(ctx, 1); err != nil {
		t.Fatal(err)
	}
	s.Until(isLit)
	if _, err := shop.Operator().End(ctx, 1); err != nil {
		t.Fatal(err)
	}
	s.Click("#buy")
	s.UntilText("#buy", "Ended")
	s.Until(`[...document.querySelectorAll('.facts div')].at(-1).textContent === 'EndedEarly'`)
}
