package outage

import (
	"context"
	"testing"
	"time"

	"seckill/test/market"
)

// MariaDB dies in the middle of batches. The shop goes on selling; orders stay
// queued and readable; when it is back they appear.
func TestTheStoreIsKilledAndRestarted(t *testing.T) {
	s := open(t, plan{ownStore: true})
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		s.maria.Kill()
		struck := time.Now()
		c := s.sells(ctx)
		market.Pause(ctx, outage)
		s.wantAnswers(struck, time.Now())
		s.readsQueued(ctx, c)
		s.maria.Start()
		s.Confirmed(c)
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}

// readsQueued reads an order that the store has not heard of, at every
// instance.
func (s *site) readsQueued(ctx context.Context, c *market.Claim) {
	s.t.Helper()
	for range s.engines {
		order, err := s.Read(ctx, c)
		if err != nil || order.Status != "queued" {
			s.t.Errorf("without the store, order %s is %q (%v)", c.No, order.Status, err)
		}
	}
}
