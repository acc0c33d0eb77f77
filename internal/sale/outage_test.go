package sale_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/server"
)

// onRedis moves a rig to the ledger of a Redis.
func onRedis(t *testing.T, r *rig.Rig, addrs ...string) *ledgerredis.Ledger {
	t.Helper()
	l, err := ledgerredis.Open(t.Context(), ledgerredis.Options{Place: redisclient.Place{Addrs: addrs}, Prefix: "seckill:"})
	rig.Must(t, err)
	t.Cleanup(func() {
		if err := l.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r.On(l, l.Queue())
	return l
}

// patience is a duty's round; what a round does for sales without a ledger, and
// in the store, comes long before.
const patience = 30 * time.Second

// While Redis is away, what needs no ledger goes on: direct sales open, and
// starts and ends are announced. That the rest does not is shown.
func TestWhileRedisIsAwayTheKeeperDoesWhatNeedsNoLedger(t *testing.T) {
	for name, leave := range map[string]func(*server.RedisServer){
		"killed": func(s *server.RedisServer) { s.Kill() },
		"frozen": func(s *server.RedisServer) { s.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			s := server.Redis(t, server.RedisOptions{})
			r := rig.New(t)
			onRedis(t, r, s.Addr())
			r.Open(t, 1, 5, func(p *seckill.Product) { p.EndsAt = r.Time.Now().Add(time.Minute) })
			r.Product(t, 2, 5)
			r.Product(t, 3, 5, rig.Strategy(seckill.StrategyDirect))
			leave(s)
			r.Time.Advance(2 * time.Minute)

			ended := make(chan uint32, 10)
			k := sale.NewKeeper(r.Lifecycle, time.Minute, func(product uint32) { ended <- product }, func(uint32) {})
			rig.Must(t, r.Clock.Sync(t.Context()))
			rig.Must(t, r.Catalog.Refresh(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			if err := k.Round(ctx); !errors.Is(err, background.ErrNoAnswer) {
				t.Errorf("the round ended with %v", err)
			}
			if took := time.Since(began); took > patience/2 {
				t.Errorf("the round took %v", took)
			}
			if p := r.Stored(t, 3); p.Epoch != 1 {
				t.Errorf("the direct sale has epoch %d: it is not open", p.Epoch)
			}
			select {
			case product := <-ended:
				if product != 1 {
					t.Errorf("product %d ended", product)
				}
			default:
				t.Error("the end of the sale was not announced")
			}
		})
	}
}
