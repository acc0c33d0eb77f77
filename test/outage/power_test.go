package outage

import (
	"context"
	"testing"

	"seckill/test/market"
)

// Redis, MariaDB and all instances die at once, and nobody is left who
// remembers an answer. With both servers syncing every commit, what was
// answered is there when they are back.
func TestEverythingDiesAtOnce(t *testing.T) {
	s := open(t, plan{ownStore: true})
	s.during(func(ctx context.Context) {
		market.Pause(ctx, warmUp)
		for _, e := range s.engines {
			e.Kill()
		}
		s.redis.Kill()
		s.maria.Kill()
		s.maria.Start()
		s.redis.Start()
		for _, e := range s.engines {
			e.Start()
		}
		market.Pause(ctx, afterwards)
	})
	s.keepsItsPromises()
}
