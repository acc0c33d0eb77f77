package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

const (
	roundsEnv     = "SECKILL_CRASH_ROUNDS"
	seedEnv       = "SECKILL_CRASH_SEED"
	defaultRounds = 10
	doors         = 32                      // of a campaign; a short run has half
	lifeMost      = 1500 * time.Millisecond // from ready to the kill
	slowWorker    = "60"                    // orders a second, a third of what the crowd asks for
	unreadyMost   = 120 * time.Millisecond  // from the start to a kill before ready
)

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestKilledAtRandomInstants loads the real binary with shoppers who buy,
// repeat, cancel and pay in every right and wrong way, and an operator who
// changes stock, pauses, refunds, recovers and reconciles; kills it with
// kill -9 at random instants, also before it is ready; and shows at the end
// that all promises held over all its lives.
func TestKilledAtRandomInstants(t *testing.T) {
	rounds, seed := fromEnv(t, roundsEnv, defaultRounds), fromEnv(t, seedEnv, rand.Uint64())
	t.Logf("%s=%d %s=%d", roundsEnv, rounds, seedEnv, seed)
	e := engine.Start(t, engine.Options{Settings: map[string]string{
		"order.expire_after": "2s", "worker.batch_wait": "5ms", "log.level": "warn",
	}})
	b := newBook(t, e,
		engine.Product{ID: 1, Stock: 300, PerUserLimit: 1},
		engine.Product{ID: 2, Stock: 300, PerUserLimit: 3},
		engine.Product{ID: 3, Stock: 150, PerUserLimit: 2, LimitGroup: 3},
		engine.Product{ID: 4, Stock: 150, PerUserLimit: 2, LimitGroup: 3},
		engine.Product{ID: 5, Stock: 100, PerUserLimit: 2},
	)
	shoppers := doors
	if rounds <= defaultRounds {
		shoppers /= 2
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan struct{})
	go func() {
		defer close(left)
		(&market.Crowd{Book: b.Book, Rebuildable: 5}).Run(ctx, shoppers, seed)
	}()
	rng := rand.New(rand.NewPCG(seed, 1<<33))
	for round := range rounds {
		market.Pause(ctx, time.Duration(rng.Int64N(int64(lifeMost))))
		e.Kill()
		for rng.IntN(4) == 0 { // and again before it is ready
			e.StartArmed("")
			market.Pause(ctx, time.Duration(rng.Int64N(int64(unreadyMost))))
			e.Kill()
		}
		// Some lives have a slow worker, so that the next kill meets a backlog;
		// the last one catches up.
		e.Unset("worker.rate_per_second")
		if rng.IntN(3) == 0 && round+1 < rounds {
			e.Set("worker.rate_per_second", slowWorker)
		}
		e.Start()
		if t.Failed() {
			t.Fatalf("in round %d", round+1)
		}
	}
	leave()
	<-left
	t.Logf("%s over %d kills", b.Summary(), rounds)
	b.Settle()
	b.SellOut()
	b.Check()
}
