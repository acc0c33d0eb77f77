package outage

import (
	"context"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/market"
)

const (
	// windowed is a product whose sale begins and ends within the test.
	windowed  uint32 = 20
	opensIn          = 2 * time.Second
	lasts            = 4 * time.Second
	expiresIn        = 8 * time.Second
	// clockSlack is by how much an answer may miss the instant: a window is
	// measured over the network, and the machine may be busy.
	clockSlack = 500 * time.Millisecond
)

// The clocks of two instances are ten minutes apart. Sales begin and end by the
// ledger's clock, and orders are to be paid by the store's, at both.
func TestClocksOfInstancesAreWrong(t *testing.T) {
	s := open(t, plan{
		faults:   []string{"clock:+5m", "clock:-5m"},
		settings: map[string]string{"order.expire_after": expiresIn.String()},
	})
	opens := time.Now().Add(opensIn)
	s.Open(engine.Product{ID: windowed, Stock: int64(len(s.engines)), PerUserLimit: 1, StartsAt: opens, EndsAt: opens.Add(lasts)})
	s.during(func(ctx context.Context) {
		for _, e := range s.engines {
			s.wantWindow(ctx, e, opens.Add(-clockSlack), seckill.CodeNotStarted)
		}
		market.Pause(ctx, time.Until(opens.Add(clockSlack)))
		for _, e := range s.engines {
			s.wantWindow(ctx, e, opens.Add(lasts-clockSlack), "")
		}
		s.wantPayBefore()
		market.Pause(ctx, time.Until(opens.Add(lasts+clockSlack)))
		for _, e := range s.engines {
			s.wantWindow(ctx, e, time.Now().Add(time.Minute), seckill.CodeEnded)
		}
	})
	s.keepsItsPromises()
}

// wantWindow wants a purchase at an instance to be answered so. An instance
// that has not heard of the product yet is asked again, and an answer that came
// too late to mean anything is let pass.
func (s *site) wantWindow(ctx context.Context, e *engine.Engine, until time.Time, want seckill.Code) {
	s.t.Helper()
	c := s.NewClaim(s.NewBuyer(), windowed, engine.Purchase{Quantity: 1})
	var no string
	var err error
	market.Eventually(s.t, "an instance knows the product", func(context.Context) bool {
		no, err = c.Buyer.At(e).Buy(ctx, windowed, c.Purchase)
		return engine.CodeOf(err) != seckill.CodeNotFound
	})
	if got := engine.CodeOf(err); time.Now().Before(until) && (got != want || !engine.Answered(err)) {
		s.t.Errorf("a purchase was answered %q (%v), want %q", got, err, want)
	}
	if err == nil {
		c.No = no
	}
}

// wantPayBefore wants orders of either instance to have as much time.
func (s *site) wantPayBefore() {
	s.t.Helper()
	for range s.engines {
		c := s.Buy(spared, 1)
		before := time.Now()
		order := s.Confirmed(c)
		left := order.PayBefore.Time().Sub(before)
		if early := expiresIn - left; early.Abs() > clockSlack+time.Second {
			s.t.Errorf("order %s must be paid within %v, want %v", order.OrderNo, left, expiresIn)
		}
	}
}
