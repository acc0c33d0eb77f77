package outage

import (
	"context"
	"testing"

	"seckill/test/market"
)

// The master dies with writes that its replica never got. Whoever heard of
// them notices with the next call to the new master.
func TestAStaleReplicaTakesOver(t *testing.T) {
	s := open(t, plan{sentinel: true})
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		before := s.epochs(ctx)
		master := s.sentinel.Master()
		s.Lose(s.ledgered()...)
		s.sentinel.Detach(master)
		market.Pause(ctx, warmUp)
		master.Kill()
		s.sentinel.WaitFailover(master)
		s.wantNoticed(ctx, before)
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}

// The sentinels have replaced a master that is alive, and one instance, cut
// off from them, goes on with it: for a while there are two ledgers that sell
// the same units. The store sells each of them once.
func TestTheOldMasterIsStillReachableByOneInstance(t *testing.T) {
	s := open(t, plan{sentinel: true, networks: true})
	cutOff := s.toRedis[:len(s.toRedis)/len(s.engines)] // the first instance's way to the sentinels
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		before := s.epochs(ctx)
		old := s.sentinel.Master()
		s.Lose(s.ledgered()...)
		for _, way := range cutOff {
			way.Freeze()
		}
		s.sentinel.Hide(old)
		s.sentinel.WaitFailover(old)
		market.Pause(ctx, outage)
		for _, way := range cutOff {
			way.Heal()
		}
		s.sentinel.Show(old)
		s.sentinel.WaitDemoted(old)
		s.wantNoticed(ctx, before)
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}
