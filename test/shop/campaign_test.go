package shop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	forEnv  = "SECKILL_SHOP_FOR"  // how long, such as 3m
	seedEnv = "SECKILL_SHOP_SEED" // repeats the order of faults

	shortFor    = 6 * time.Second
	shortOrders = 150
	customers   = 6
	calmMost    = 400 * time.Millisecond // between two faults
	faultMost   = 700 * time.Millisecond // of a fault
	equalWithin = 2 * time.Minute        // after the last fault
	maxShown    = 10                     // differences in a failed test's output
)

// fault is one thing that goes wrong for a while.
type fault struct {
	name  string
	begin func(m *market)
	end   func(m *market)
}

var faults = []fault{
	{"shop killed", func(m *market) { m.shop.Kill() }, func(m *market) { m.shop.Start() }},
	{"shop stopped", func(m *market) { m.shop.Stop() }, func(m *market) { m.shop.Start() }},
	{"shop frozen", func(m *market) { m.shop.Signal(syscall.SIGSTOP) }, func(m *market) { m.shop.Signal(syscall.SIGCONT) }},
	{"engine killed", func(m *market) { m.engine.Kill() }, func(m *market) { m.engine.Start() }},
	{"both killed", func(m *market) { m.shop.Kill(); m.engine.Kill() }, func(m *market) { m.engine.Start(); m.shop.Start() }},
	{"webhooks cut", func(m *market) { m.toShop.Cut() }, func(m *market) { m.toShop.Heal() }},
	{"webhooks frozen", func(m *market) { m.toShop.Freeze() }, func(m *market) { m.toShop.Heal() }},
	{"webhooks dropped", func(m *market) { m.toShop.HalfOpen() }, func(m *market) { m.toShop.Heal() }},
	// The shop commits, and its answer is lost.
	{"answers lost", func(m *market) { m.toShop.FreezeReplies() }, func(m *market) { m.toShop.Cut(); m.toShop.Heal() }},
	{"payments cut", func(m *market) { m.toEngine.Cut() }, func(m *market) { m.toEngine.Heal() }},
	{"payments' answers lost", func(m *market) { m.toEngine.FreezeReplies() }, func(m *market) { m.toEngine.Cut(); m.toEngine.Heal() }},
}

// Customers buy, pay, cancel and get refunds while the shop, the engine and the
// networks between them fail at random. Afterwards the shop's order table
// equals the engine's, order by order, and has every order that a customer was
// promised (I4).
func TestCampaign_OrderTablesEndEqual(t *testing.T) {
	duration, most := shortFor, shortOrders
	if text := os.Getenv(forEnv); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", forEnv, err)
		}
		most = math.MaxInt
	}
	seed := rand.Uint64()
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	t.Logf("%s=%s %s=%d", forEnv, duration, seedEnv, seed)
	m := openMarket(t, map[string]string{"order.expire_after": "3s", "worker.batch_wait": "5ms", "log.level": "warn"})

	ctx, leave := context.WithTimeout(t.Context(), duration)
	defer leave()
	promised := &promises{numbers: map[string]bool{}, most: most}
	var crowd sync.WaitGroup
	for i := range customers {
		rng := rand.New(rand.NewPCG(seed, uint64(i)+1))
		crowd.Go(func() { (&customer{market: m, name: fmt.Sprintf("c%d", i), rng: rng}).shopAt(ctx, promised) })
	}
	m.breakThings(ctx, rand.New(rand.NewPCG(seed, 0)))
	crowd.Wait()
	if t.Failed() {
		return
	}
	if promised.count() == 0 {
		t.Fatal("no customer bought anything")
	}
	m.wantEqual(promised)
}

// breakThings injects every fault once in random order, and again, until ctx
// ends. At its end no fault is active.
func (m *market) breakThings(ctx context.Context, rng *rand.Rand) {
	m.t.Helper()
	count := 0
	for ctx.Err() == nil {
		for _, i := range rng.Perm(len(faults)) {
			pause(ctx, time.Duration(rng.Int64N(int64(calmMost))))
			if ctx.Err() != nil {
				break
			}
			faults[i].begin(m)
			pause(ctx, time.Duration(rng.Int64N(int64(faultMost))))
			faults[i].end(m)
			count++
		}
	}
	m.t.Logf("%d faults", count)
}

// wantEqual waits until both order tables are equal and every order is paid or
// closed. Orders that are not paid in time expire.
func (m *market) wantEqual(promised *promises) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), equalWithin)
	defer cancel()
	statuses := map[string]int{}
	unequal := errors.New("not compared yet")
	err := until(ctx, func() error {
		engines, err := m.engineRows(ctx)
		if err != nil {
			return err
		}
		shops, err := m.shopRows(ctx)
		if err != nil {
			return err
		}
		clear(statuses)
		for _, r := range engines {
			statuses[r.status]++
		}
		unequal = errors.Join(differences(engines, shops, promised)...)
		return unequal
	})
	if err != nil {
		m.t.Errorf("the order tables differ %s after the last fault (%v):\n%v", equalWithin, err, unequal)
	}
	m.t.Logf("%d orders promised, the tables have %v", promised.count(), statuses)
}

// differences lists at most maxShown differences.
func differences(engines, shops map[string]row, promised *promises) (all []error) {
	add := func(format string, args ...any) {
		if len(all) < maxShown {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	promised.mu.Lock()
	defer promised.mu.Unlock()
	for no := range promised.numbers {
		if _, found := engines[no]; !found {
			add("order %s was promised and the engine has no such order", no)
		}
	}
	for no, r := range engines {
		if s, found := shops[no]; !found {
			add("order %s is missing in the shop, the engine has %+v", no, r)
		} else if s != r {
			add("order %s is %+v in the shop and %+v in the engine", no, s, r)
		} else if r.status == "pending" || r.status == "queued" {
			add("order %s is still %s", no, r.status)
		}
	}
	for no := range shops {
		if _, found := engines[no]; !found {
			add("order %s is in the shop alone", no)
		}
	}
	return all
}
