package instance

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/internal/store/storesql"
	"seckill/test/engine"
	"seckill/test/market"
	"seckill/test/server"
)

const (
	// lossProductsEnv is how many products are on sale; unset, it is
	// lossProducts.
	lossProductsEnv = "SECKILL_LOSS_PRODUCTS"
	lossProducts    = 200
	// lossBase and lossEach bound how long a loss of everything lasts: the time to
	// notice it, the wait for promises of other instances, and what a machine that
	// does other work costs; and the work per product. 2,000 products are back
	// within 15 s. 200 that wait one after the other, 32 at once, take 8.4 s for the
	// waits alone.
	lossBase = 7 * time.Second
	lossEach = 4 * time.Millisecond
	// lossCrowd is how many of the products are bought while it lasts.
	lossCrowd = 20
	// lossMost bounds every wait.
	lossMost = 5 * time.Minute
	// lossProbes is how many products are bought at once to see whether they are
	// sold again.
	lossProbes = 16
)

// After FLUSHALL all products share one wait for the promises of the other
// instance. The time is measured from outside: until both instances have sold a
// unit of every product from its new ledger.
func TestLoss_ManyProductsAreSoldAgainSoon(t *testing.T) {
	products, err := strconv.Atoi(cmp.Or(os.Getenv(lossProductsEnv), strconv.Itoa(lossProducts)))
	must(t, "read "+lossProductsEnv, err)
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	dsn := server.SharedMariaDB(t).NewDatabase(t)
	l := &loss{t: t, promised: make(map[string]bool)}
	a, b := pair(t, engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(dsn), map[string]string{"log.level": "warn"}))
	l.instances = []*engine.Engine{a, b}
	l.pool, err = sql.Open("mysql", strings.TrimPrefix(dsn, "mysql:"))
	must(t, "open the tables", err)
	defer l.pool.Close()
	l.create(dsn, products)
	l.await("every product is on sale", func() bool { return len(l.epochs()) == products })

	crowd, leave := context.WithCancel(t.Context())
	var buying sync.WaitGroup
	defer buying.Wait()
	defer leave()
	for i := range l.instances {
		buying.Go(func() { l.shop(crowd, i) })
	}
	l.await("the crowd has bought", func() bool { return l.accepted() > 2*lossCrowd })
	inTime(t, func(n int) []timed {
		before := l.epochs()
		redis.FlushAll()
		took := l.soldAgain(n, before)
		after := l.epochs()
		most := uint64(0)
		for id := range after {
			most = max(most, after[id]-before[id])
		}
		t.Logf("%d products are sold again %s after FLUSHALL; rebuilt %d times at most", products, took.Round(10*time.Millisecond), most)
		bound := time.Duration(market.Crowding(t) * float64(lossBase+time.Duration(products)*lossEach))
		return []timed{{fmt.Sprintf("to sell %d products again", products), took, bound}}
	})
	leave()
	buying.Wait()
	l.await("every promise is a pending order", l.kept)
}

// loss is a shop whose Redis forgets everything.
type loss struct {
	t         *testing.T
	instances []*engine.Engine
	pool      *sql.DB

	mu       sync.Mutex
	promised map[string]bool // order numbers that were answered 202
}

// await is until, for as long as thousands of products take.
func (l *loss) await(what string, holds func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(lossMost); !holds(); time.Sleep(10 * pollEvery) {
		if time.Now().After(deadline) {
			l.t.Fatalf("not within %s: %s", lossMost, what)
		}
	}
}

// create puts products into the store, which the instances then preheat.
func (l *loss) create(dsn string, products int) {
	l.t.Helper()
	s, err := storesql.Open(l.t.Context(), dsn, storesql.Options{})
	must(l.t, "open the store", err)
	defer s.Close()
	ids := make(chan uint32)
	var creating sync.WaitGroup
	for range lossProbes {
		creating.Go(func() {
			for id := range ids {
				_, err := s.CreateProduct(l.t.Context(), seckill.Product{
					ID: id, Name: fmt.Sprintf("product %d", id), PriceCents: 100, Currency: "CNY", Stock: 100_000, PerUserLimit: 1, Shards: 1,
					Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
				}, store.Actor{Name: "test"})
				if err != nil {
					l.t.Errorf("create product %d: %v", id, err)
				}
			}
		})
	}
	for id := range products {
		ids <- uint32(id + 1)
	}
	close(ids)
	creating.Wait()
}

// epochs are the epochs of products that are preheated and not being rebuilt.
func (l *loss) epochs() map[uint32]uint64 {
	l.t.Helper()
	rows, err := l.pool.QueryContext(l.t.Context(), `SELECT id, epoch FROM tb_seckill_product WHERE epoch > 0 AND rebuilding = 0`)
	must(l.t, "read the products", err)
	defer rows.Close()
	epochs := make(map[uint32]uint64)
	for rows.Next() {
		var id uint32
		var epoch uint64
		must(l.t, "read a product", rows.Scan(&id, &epoch))
		epochs[id] = epoch
	}
	must(l.t, "read the products", rows.Err())
	return epochs
}

// shop buys from some of the products at one instance until ctx ends.
func (l *loss) shop(ctx context.Context, instance int) {
	for n := 0; ctx.Err() == nil; n++ {
		l.buy(ctx, l.instances[instance], uint32(n%lossCrowd+1), fmt.Sprintf("crowd-%d-%d", instance, n))
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// buy buys one unit, and reports whether it was promised. Repeated, it finds the
// order of an answer that was lost.
func (l *loss) buy(ctx context.Context, e *engine.Engine, product uint32, buyer string) bool {
	no, err := e.Buyer(buyer).Buy(ctx, product, engine.Purchase{Quantity: 1, Key: buyer})
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.promised[no] = true
		return true
	}
	if code := engine.CodeOf(err); engine.Answered(err) && code != seckill.CodeBusy && code != seckill.CodeTooHot {
		l.t.Errorf("%s was answered %v for product %d", buyer, err, product)
	}
	return false
}

func (l *loss) accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.promised)
}

// soldAgain is how long it takes until every instance has sold a unit of every
// product after its rebuild.
func (l *loss) soldAgain(try int, before map[uint32]uint64) time.Duration {
	began := time.Now()
	rebuilt := make(chan uint32)
	var probing sync.WaitGroup
	for range lossProbes {
		probing.Go(func() {
			for id := range rebuilt {
				for i, e := range l.instances {
					for !l.buy(l.t.Context(), e, id, fmt.Sprintf("probe-%d-%d-%d", try, i, id)) && !l.t.Failed() {
						if time.Since(began) > lossMost {
							l.t.Errorf("product %d is not sold again within %s", id, lossMost)
						}
						time.Sleep(5 * pollEvery)
					}
				}
			}
		})
	}
	waiting := maps.Clone(before)
	var half time.Duration
	l.await("every product is rebuilt", func() bool {
		for id, epoch := range l.epochs() {
			if was, waits := waiting[id]; waits && epoch > was {
				delete(waiting, id)
				rebuilt <- id
			}
		}
		if half == 0 && len(waiting) <= len(before)/2 {
			half = time.Since(began)
		}
		return len(waiting) == 0
	})
	close(rebuilt)
	last := time.Since(began)
	probing.Wait()
	l.t.Logf("half of them were rebuilt after %s, the last after %s", half.Round(10*time.Millisecond), last.Round(10*time.Millisecond))
	return time.Since(began)
}

// kept reports whether every promise is a pending order.
func (l *loss) kept() bool {
	rows, err := l.pool.QueryContext(l.t.Context(), `SELECT order_no FROM tb_seckill_order WHERE status = ?`, seckill.OrderPending)
	must(l.t, "read the orders", err)
	defer rows.Close()
	missing := maps.Clone(l.promised)
	for rows.Next() {
		var no string
		must(l.t, "read an order", rows.Scan(&no))
		delete(missing, no)
	}
	must(l.t, "read the orders", rows.Err())
	return len(missing) == 0
}
