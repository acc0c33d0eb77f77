package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

const (
	// backlogEnv is how many orders wait in the outbox, as "20000,60000".
	backlogEnv = "SECKILL_MEASURE_BACKLOG"
	// backlogDoors is how many buyers press the button at once.
	backlogDoors = 64
	// backlogMost bounds every wait.
	backlogMost = 10 * time.Minute
)

// TestMeasureRecover_Backlog measures for how long a product is busy while a
// recover writes orders that no worker has written. For docs/contributing/campaigns.md.
func TestMeasureRecover_Backlog(t *testing.T) {
	counts := os.Getenv(backlogEnv)
	if counts == "" {
		t.Skipf("%s is not set", backlogEnv)
	}
	for text := range strings.SplitSeq(counts, ",") {
		t.Run(text, func(t *testing.T) {
			orders, err := strconv.Atoi(text)
			must(t, "read "+backlogEnv, err)
			measureBacklog(t, orders)
		})
	}
}

func measureBacklog(t *testing.T, orders int) {
	ctx, cancel := context.WithTimeout(t.Context(), backlogMost)
	defer cancel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)), map[string]string{"order.expire_after": "1h", "log.level": "warn"})
	e := engine.Start(t, engine.Options{Settings: settings, Roles: []string{engine.RoleShop, engine.RoleAdmin}}) // no worker
	openSale(t, e, engine.Product{ID: 1, Stock: int64(orders) + 1, PerUserLimit: 1})
	sees(t, e, 1)
	sold := fillBacklog(ctx, t, e, orders)
	before, err := e.Operator().Stats(ctx, 1)
	must(t, "read the figures", err)
	if before.Queue.Depth != sold || before.Store.Pending != 0 {
		t.Fatalf("%d orders were promised, of which %+v wait: %+v", sold, before.Queue, before.Store)
	}
	load, err := os.ReadFile("/proc/loadavg")
	must(t, "read the load", err)
	began := time.Now()
	recovered := make(chan error, 1)
	go func() {
		_, err := e.Operator().Recover(ctx, 1)
		recovered <- err
	}()
	again := errors.New("not asked yet")
	for now := before; again != nil && ctx.Err() == nil; {
		if figures, err := e.Operator().Stats(ctx, 1); err == nil {
			now = figures
		}
		if now.Epoch > before.Epoch {
			_, again = e.Buyer("late").Buy(ctx, 1, engine.Purchase{Quantity: 1, Key: "late"})
		}
		market.Pause(ctx, 2*pollEvery)
	}
	took := time.Since(began)
	must(t, "buy again", again)
	if err := <-recovered; err != nil {
		t.Logf("the operator's request was answered: %v", err)
	}
	after, err := e.Operator().Stats(ctx, 1)
	must(t, "read the figures", err)
	t.Logf("%d orders: sold again %s after the recover; %d were in the store by then; load of the machine: %s",
		sold, took.Round(10*time.Millisecond), after.Store.Pending, strings.TrimSpace(string(load)))
	if after.Store.Failed != 0 {
		t.Errorf("%d promises failed", after.Store.Failed)
	}
}

// fillBacklog has so many buyers be promised a unit, and returns how many were.
func fillBacklog(ctx context.Context, t *testing.T, e *engine.Engine, orders int) (sold int64) {
	t.Helper()
	var next, promised atomic.Int64
	var buying sync.WaitGroup
	for range backlogDoors {
		buying.Go(func() {
			for n := next.Add(1); n <= int64(orders); n = next.Add(1) {
				name := fmt.Sprintf("buyer-%d", n)
				buyer, err := e.Buyer(name), errors.New("not asked yet")
				for err != nil && ctx.Err() == nil {
					_, err = buyer.Buy(ctx, 1, engine.Purchase{Quantity: 1, Key: name})
					if code := engine.CodeOf(err); err != nil && !market.Temporary(err) && engine.Answered(err) {
						t.Errorf("%s was answered %q", name, cmp.Or(string(code), err.Error()))
						return
					}
				}
				if err == nil {
					promised.Add(1)
				}
			}
		})
	}
	buying.Wait()
	return promised.Load()
}
