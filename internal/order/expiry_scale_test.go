package order_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carriertest"

	"seckill/internal/order"
	"seckill/internal/store"
	"seckill/internal/store/storesql"
	"seckill/test/rig"
	"seckill/test/server"
)

const (
	// ordersEnv sets the number of orders, due within a minute; the default is
	// small. If storeEnv is "mariadb", the test uses a MariaDB server in place
	// of SQLite.
	ordersEnv = "SECKILL_EXPIRY_ORDERS"
	storeEnv  = "SECKILL_EXPIRY_STORE"
)

// load is the number of orders and the time in which they become due.
type load struct {
	orders, batch int
	lead, over    time.Duration // until the first is due, and from the first to the last
	within        time.Duration // the latest that an order may expire after it is due
	full          bool
	mariadb       bool
}

func theLoad(t *testing.T) load {
	t.Helper()
	text := os.Getenv(ordersEnv)
	if text == "" {
		// Slow on a busy machine with the race detector; that is no failure.
		return load{orders: 3000, batch: 100, lead: 3 * time.Second, over: 2 * time.Second, within: 10 * time.Second}
	}
	n, err := strconv.Atoi(text)
	rig.Must(t, err)
	return load{
		orders: n, batch: 100, lead: 5*time.Second + time.Duration(n)*time.Second/2000, over: time.Minute, within: 2 * time.Second,
		full: true, mariadb: os.Getenv(storeEnv) == "mariadb",
	}
}

// The bound of 2 s holds for the full load; it is run with
//
//	SECKILL_EXPIRY_ORDERS=100000 go test -count=1 -v -run TestExpiry_OrdersExpireInTime ./internal/order
func TestExpiry_OrdersExpireInTime(t *testing.T) {
	l := theLoad(t)
	for _, c := range []struct {
		name           string
		messages, scan bool
	}{
		{"by messages", true, false},
		{"by the scan", false, true},
		{"by both", true, true},
	} {
		if !c.messages && !l.full {
			continue // only a figure to compare with
		}
		t.Run(c.name, func(t *testing.T) { expireInTime(t, l, c.messages, c.scan) })
	}
}

func expireInTime(t *testing.T, l load, messages, scan bool) {
	in := openStore(t, l.mariadb)
	p := newSale(t, in, int64(l.orders))
	late := &lateness{by: make(map[string]int)}
	scheduler := order.NewExpiryScheduler(order.ExpiryOptions{
		Open:  func(context.Context) (carrier.Delayer, error) { return carriertest.NewMemoryDelayer(), nil },
		Codec: newCodec(t, "store-1"), Store: in, Meter: late, OnExpired: late.saw("message"), Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	expirer := &background.Loop{
		Name: "expire", Every: time.Second, Timeout: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Round: (&order.Expirer{Store: in, WarnLead: l.over / 6, OnExpired: late.saw("scan")}).Round,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	t.Cleanup(func() { cancel(); loops.Wait() })
	if messages {
		loops.Go(func() { scheduler.Run(ctx) })
	}
	if scan {
		expirer.Ready()
		loops.Go(func() { expirer.Run(ctx) })
	}

	first := time.Now().Add(l.lead)
	batches := l.orders / l.batch
	for i := range batches {
		due := first.Add(l.over * time.Duration(i) / time.Duration(batches))
		within := time.Until(due)
		nos := confirm(t, in, p, l.batch, within)
		if messages {
			scheduler.Schedule(p.ID, nos, time.Now().Add(within)) // as the worker does
		}
	}
	if late := -time.Until(first); late > 0 && !l.full {
		l.within += late // orders that were due before the last one was made
	} else if late > 0 {
		t.Fatalf("the orders were made %s too late to measure anything", late)
	}
	ends := time.After(time.Until(first) + l.over + 2*rig.Patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late.count() < l.orders {
		if messages && !scan && !l.full && late.count() > 0 && late.count()+late.left(l) >= l.orders {
			break
		}
		select {
		case <-tick.C:
		case <-ends:
			t.Fatalf("%d of %d orders expired", late.count(), l.orders)
		}
	}
	most := late.report(t, l)
	if messages && most > l.within { // the scan alone is the safety net, without a bound
		t.Errorf("an order expired %s after its time, want at most %s", most, l.within)
	}
}

func openStore(t *testing.T, mariadb bool) store.Store {
	t.Helper()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	if mariadb {
		dsn = server.SharedMariaDB(t).NewDatabase(t)
	}
	s, err := storesql.Open(t.Context(), dsn, storesql.Options{})
	rig.Must(t, err)
	t.Cleanup(func() { s.Close() })
	rig.Must(t, s.Migrate(t.Context()))
	return s
}

func newSale(t *testing.T, in store.Store, stock int64) seckill.Product {
	t.Helper()
	now := time.Now()
	p, err := in.CreateProduct(t.Context(), seckill.Product{
		ID: 7, Group: 7, Name: "Kettle", PriceCents: 999, Currency: "CNY", Stock: stock, PerUserLimit: 1, Shards: 1,
		Strategy: seckill.StrategyAsync, Fallback: seckill.FallbackWait, StartsAt: now, EndsAt: now.Add(time.Hour),
	}, rig.Operator)
	rig.Must(t, err)
	p, err = in.OpenEpoch(t.Context(), p.ID, 0, 0, rig.Operator, func(seckill.Order) error { return nil })
	rig.Must(t, err)
	return p
}

// lateness records how long after their due time orders expired, by the clock
// of this machine after the commit.
type lateness struct {
	mu      sync.Mutex
	delay   []time.Duration
	by      map[string]int
	dropped int // dropped messages; the scan expires their orders
}

func (l *lateness) Message(result order.ExpiryResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if result == order.Dropped {
		l.dropped++
	}
}

// left is how many orders the scan expires because a busy machine dropped their
// messages.
func (l *lateness) left(of load) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped * of.batch
}

func (l *lateness) saw(by string) func(orders []seckill.Order) {
	return func(orders []seckill.Order) {
		now := time.Now()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.by[by] += len(orders)
		for i := range orders {
			l.delay = append(l.delay, now.Sub(orders[i].PayBefore))
		}
	}
}

func (l *lateness) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.delay)
}

func (l *lateness) report(t *testing.T, of load) (latest time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.delay)
	most := l.delay[len(l.delay)-1]
	at := func(share float64) time.Duration {
		return l.delay[int(share*float64(len(l.delay)-1))].Round(time.Millisecond)
	}
	t.Logf("%d orders due within %s: median %s, p99 %s, latest %s after their time; %v",
		of.orders, of.over, at(0.5), at(0.99), most.Round(time.Millisecond), l.by)
	return most
}
