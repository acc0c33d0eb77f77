package instance

import (
	"fmt"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// best repeats a measurement until it is quick, and fails if it never is.
func best(t *testing.T, what string, measure func(try int) time.Duration) {
	t.Helper()
	var all []time.Duration
	for try := range pushTries {
		took := measure(try)
		if took < pushed {
			return
		}
		all = append(all, took)
	}
	t.Errorf("%s took %v, want one below %s", what, all, pushed)
}

func TestWhatIsChangedAtOneInstanceIsMetAtTheOtherAtOnce(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))

	best(t, "a new product", func(try int) time.Duration {
		id := uint32(100 + try)
		openSale(t, a, engine.Product{ID: id, Stock: 5})
		return sees(t, b, id)
	})

	openSale(t, a, engine.Product{ID: 1, Stock: 5})
	sees(t, b, 1)
	_, err := a.Operator().Pause(t.Context(), 1)
	must(t, "pause", err)
	// No push and no second is needed for this: the ledger itself refuses.
	if no, code := decided(t, b, 1, "bob"); code != seckill.CodePaused {
		t.Errorf("after the pause was answered, a purchase elsewhere was answered %q %s", code, no)
	}
	best(t, "resuming", func(try int) time.Duration {
		_, err := a.Operator().Pause(t.Context(), 1)
		must(t, "pause", err)
		until(t, "the other refuses", func() bool {
			_, code := buy(t.Context(), b, 1, "bob")
			return code == seckill.CodePaused
		})
		_, err = a.Operator().Resume(t.Context(), 1)
		must(t, "resume", err)
		buyer := fmt.Sprintf("resumed-%d", try)
		return until(t, "the other sells", func() bool { _, code := buy(t.Context(), b, 1, buyer); return code == "" })
	})

	openSale(t, a, engine.Product{ID: 2, Stock: 1})
	sees(t, b, 2)
	buys(t, a, 2, "first")
	best(t, "stock that was added", func(try int) time.Duration {
		until(t, "the other is sold out", func() bool {
			_, code := buy(t.Context(), b, 2, "late")
			return code == seckill.CodeSoldOut
		})
		_, err := a.Operator().ChangeStock(t.Context(), 2, 1, fmt.Sprintf("more-%d", try))
		must(t, "add stock", err)
		buyer := fmt.Sprintf("second-%d", try)
		return until(t, "the other sells", func() bool { _, code := buy(t.Context(), b, 2, buyer); return code == "" })
	})

	openSale(t, a, engine.Product{ID: 3, Stock: 1})
	sees(t, b, 3)
	best(t, "a unit that came back", func(try int) time.Duration {
		holder := fmt.Sprintf("holder-%d", try)
		no := buys(t, b, 3, holder)
		await(t, b, holder, no, "pending")
		until(t, "both are sold out", func() bool {
			_, atA := buy(t.Context(), a, 3, "late")
			_, atB := buy(t.Context(), b, 3, "late")
			return atA == seckill.CodeSoldOut && atB == seckill.CodeSoldOut
		})
		_, err := a.Buyer(holder).Cancel(t.Context(), no)
		must(t, "cancel", err)
		buyer := fmt.Sprintf("heir-%d", try)
		var heir string
		took := until(t, "the unit is sold again", func() bool {
			var code seckill.Code
			heir, code = buy(t.Context(), b, 3, buyer)
			return code == ""
		})
		await(t, b, buyer, heir, "pending")
		_, err = b.Buyer(buyer).Cancel(t.Context(), heir) // for the next try
		must(t, "cancel", err)
		return took
	})
}

// The last unit is sold at one instance; the other, which has not asked the
// ledger for anything, turns its first claim away at the door.
func TestSoldOutIsKnownAtTheOtherBeforeItAsks(t *testing.T) {
	t.Parallel()
	a, b := pair(t, shared(t))
	turnedAway := func() float64 { return metric(t, b, `seckill_gate_refused_total{gate="sold_out"}`) }
	for id := range uint32(10) {
		product := id + 1
		openSale(t, a, engine.Product{ID: product, Stock: 1})
		sees(t, b, product)
		before, heard := turnedAway(), metric(t, b, heardNotices)
		buys(t, a, product, "first")
		until(t, "the other has heard", func() bool { return metric(t, b, heardNotices) > heard })
		_, code := buy(t.Context(), b, product, "late")
		if code == seckill.CodeSoldOut && turnedAway() > before {
			return // on a loaded machine the flag may have fallen again: it is another's word
		}
	}
	t.Error("the other asked the ledger each time")
}

const heardNotices = `seckill_bulletin_notices_total{result="heard"}`

// A buyer whose answer was lost asks another instance, which is sold out by
// now and has never seen the buyer: the order must be found all the same.
func TestABuyerOfOneInstanceFindsTheOrderAtTheOtherThoughItIsSoldOut(t *testing.T) {
	t.Parallel()
	settings := shared(t)
	a, b := pair(t, settings)
	openSale(t, a, engine.Product{ID: 1, Stock: 1})
	sees(t, b, 1)
	no := buys(t, a, 1, "bob")
	for _, e := range []*engine.Engine{b, engine.Start(t, engine.Options{Settings: settings})} {
		sees := 0
		until(t, "the flag is up", func() bool {
			if _, code := buy(t.Context(), e, 1, "eve"); code == seckill.CodeSoldOut {
				sees++
			}
			return sees > 3
		})
		_, err := e.Buyer("bob").Buy(t.Context(), 1, engine.Purchase{Quantity: 1})
		refusal, _ := err.(*engine.Refusal)
		if refusal == nil || refusal.Code != seckill.CodeAlreadyPurchased || refusal.OrderNo != no {
			t.Errorf("asked again, bob was answered %v, want the order %s", err, no)
		}
	}
}
