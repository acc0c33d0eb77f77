package outage

import (
	"context"
	"testing"
	"time"

	"seckill/test/market"
)

const (
	warmUp     = time.Second     // of load before a fault
	outage     = 3 * time.Second // that a server is away
	afterwards = time.Second     // of load after it

	// answerWithin is what a shopper waits at most, whatever Redis does, and
	// sellWithin how long after its return every instance accepts an order of
	// every product: what the engine promises. One of several outages is met so,
	// and each within hard times as much; see wantKept.
	answerWithin = time.Second
	sellWithin   = 2 * time.Second
	outages      = 4
	hard         = 2
	// slack is what a loaded machine may add where only one outage is measured.
	slack = 500 * time.Millisecond
	// askEvery is how often a probe asks whether an instance sells again.
	askEvery = 25 * time.Millisecond
	// memoryMost is how much more memory an instance may need while Redis is
	// away: a full queue of every product is some megabytes.
	memoryMost = 96 << 20
)

// With Redis dead or frozen every answer comes in time, nothing piles up, and
// the shop sells again as soon as Redis is back. With an append-only file that
// is always synced, nothing was lost.
func TestRedisIsGoneForAWhile(t *testing.T) {
	for name, fault := range map[string]struct{ strike, mend func(s *site) }{
		"killed and restarted": {func(s *site) { s.redis.Kill() }, func(s *site) { s.redis.Start() }},
		"frozen":               {func(s *site) { s.redis.Pause() }, func(s *site) { s.redis.Resume() }},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, plan{products: append(products(), spares()...)})
			s.during(func(ctx context.Context) {
				market.Pause(ctx, warmUp)
				s.sellsAll(ctx, time.Now()) // so that every instance has called of every product
				s.wantKept(func() timing {
					memory := s.memory()
					struck := time.Now()
					s.Away(s.falling()...) // on a slow machine for long enough to be taken over
					fault.strike(s)
					market.Pause(ctx, outage)
					s.wantMemory(memory)
					mended := time.Now()
					fault.mend(s)
					back := time.Now()
					selling := s.sellsAll(ctx, back)
					s.Back()
					return timing{selling: selling, answer: s.slowest(struck, mended)}
				})
				market.Pause(ctx, afterwards)
			})
			s.keepsItsPromises()
		})
	}
}
