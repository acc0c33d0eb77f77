package outage

import (
	"context"
	"testing"
	"time"

	"seckill/test/market"
)

const (
	warmUp     = 1500 * time.Millisecond // of load before a fault
	outage     = 3 * time.Second         // that a server is away
	afterwards = 1500 * time.Millisecond // of load after it

	// answerWithin is what a shopper waits at most, whatever Redis does, and
	// sellWithin how long after its return the first order is accepted. Slack is
	// what a loaded machine may add to either: it measures itself as well.
	answerWithin = time.Second
	sellWithin   = 2 * time.Second
	slack        = 500 * time.Millisecond
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
			s := open(t, plan{})
			s.during(func(ctx context.Context) {
				market.Pause(ctx, warmUp)
				memory := s.memory()
				struck := time.Now()
				fault.strike(s)
				market.Pause(ctx, outage)
				s.wantMemory(memory)
				mended := time.Now()
				fault.mend(s)
				s.wantAnswers(struck, mended)
				s.wantSelling(ctx, time.Now())
				market.Pause(ctx, afterwards)
			})
			s.keepsItsPromises()
		})
	}
}
