package outage

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

const (
	// powerCutEnv is how many times everything loses power; unset, it is twice with
	// the journal and once without.
	powerCutEnv = "SECKILL_POWERCUT_ROUNDS"
	// enoughCuts is after how many rounds a sale without a journal has surely lost
	// a promise.
	enoughCuts = 10
	// unsynced is what `appendfsync everysec` may not have on disk.
	unsynced = time.Second
	// beforeCut is how long a crowd buys at least before each cut.
	beforeCut = 1500 * time.Millisecond
	sizeEvery = 10 * time.Millisecond
)

// Redis with `everysec`, MariaDB and both instances lose power at once, and
// Redis comes back without its last second. With the journal every answer is an
// order afterwards.
func TestPowerCut_JournalLosesNoPromise(t *testing.T) {
	c := newPowerCuts(t, true)
	lost := c.repeat(cuts(t, 2))
	if lost != 0 {
		t.Errorf("%d promises were lost", lost)
	}
	c.CheckReport(asyncOne)
}

// The same without the journal loses promises: otherwise the test above would
// show nothing.
func TestPowerCut_WithoutJournalPromisesAreLost(t *testing.T) {
	c := newPowerCuts(t, false)
	rounds := cuts(t, 1)
	if lost := c.repeat(rounds); lost == 0 && rounds >= enoughCuts {
		t.Errorf("%d cuts lost nothing", rounds)
	}
}

func cuts(t *testing.T, unset int) int {
	t.Helper()
	text := os.Getenv(powerCutEnv)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", powerCutEnv, err)
	}
	return n
}

// powerCuts is a site that loses power again and again.
type powerCuts struct {
	*site
	rng     *rand.Rand
	checked int // claims of earlier rounds, which are orders
}

func newPowerCuts(t *testing.T, journal bool) *powerCuts {
	t.Helper()
	s := open(t, plan{
		ownStore: true, appendFsync: "everysec",
		products: []engine.Product{{ID: asyncOne, Stock: 10_000_000, PerUserLimit: 1}},
		settings: map[string]string{
			"promise.journal": strconv.FormatBool(journal), "order.expire_after": "24h",
			// Workers lag a little, as under load: much of the last second is not in the
			// store yet when power is lost.
			"worker.batch_wait": "1s", "worker.batch_size": "10000",
		},
	})
	return &powerCuts{site: s, rng: rand.New(rand.NewPCG(s.seed, 0))}
}

// repeat cuts the power some times, and returns how many promises were lost.
func (c *powerCuts) repeat(rounds int) (lost int) {
	c.t.Helper()
	failed := 0
	for round := range rounds {
		c.redis.HoldRewrites()
		ctx, stop := context.WithCancel(c.t.Context())
		crowd := c.buy(ctx)
		sizes := c.record(ctx)
		market.Pause(ctx, beforeCut+time.Duration(c.rng.Int64N(int64(time.Second))))
		cutAt := time.Now()
		c.killAll()
		stop()
		crowd.Wait()
		bytes := c.redis.CutAppended(sizes.at(cutAt.Add(-unsynced)))

		c.maria.Start()
		claims := c.answered()
		unwritten, _ := c.without(claims)
		c.redis.Start()
		for _, e := range c.engines {
			e.StartArmed("")
		}
		for i, e := range c.engines {
			if err := e.WaitReady(); err != nil {
				c.t.Fatalf("round %d: start instance %d: %v", round, i, err)
			}
		}
		began := time.Now()
		missing, refused := c.rest(claims)
		lost, failed = lost+len(missing), failed+refused
		c.t.Logf("round %d: %d answered, %d of them not in the store at the cut, %d bytes of Redis lost; %d promises lost, %d failed, at rest after %v",
			round+1, len(claims), len(unwritten), bytes, len(missing), refused, time.Since(began).Round(time.Millisecond))
		for no := range missing {
			c.t.Logf("lost: %s", no)
			break
		}
	}
	found := 0 // losses that nothing but the journal has noticed
	for _, e := range c.engines {
		found += strings.Count(e.Log(), "promises of the journal are neither in the store nor in the ledger")
	}
	c.t.Logf("%d power cuts: %d promises lost, %d failed explicitly; losses found by a journal alone: %d", rounds, lost, failed, found)
	return lost
}

// buy has a crowd buy until ctx ends, each buyer once.
func (c *powerCuts) buy(ctx context.Context) *sync.WaitGroup {
	var crowd sync.WaitGroup
	for n := range doors {
		crowd.Go(func() {
			for ctx.Err() == nil {
				claim := c.NewClaim(c.NewBuyer(), asyncOne, engine.Purchase{Quantity: 1, Key: "k"})
				if err := c.SendTo(ctx, c.engines[n%len(c.engines)], claim); !engine.Answered(err) {
					market.Pause(ctx, time.Millisecond)
				}
			}
		})
	}
	return &crowd
}

// killAll kills all processes in one instant, as far as one process can.
func (s *site) killAll() {
	s.t.Helper()
	pids := []int{s.redis.PID(), s.maria.PID()}
	for _, e := range s.engines {
		pids = append(pids, e.PID())
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, e := range s.engines {
		e.Kill()
	}
	s.redis.Kill()
	s.maria.Kill()
}

// sizes is how the append-only file grew.
type sizes struct {
	mu    sync.Mutex
	times []time.Time
	bytes []int64
}

// record follows the append-only file until ctx ends.
func (s *site) record(ctx context.Context) *sizes {
	s.t.Helper()
	seen, path := &sizes{}, s.redis.AppendedFile()
	go func() {
		for ok := true; ok; ok = market.Pause(ctx, sizeEvery) {
			if info, err := os.Stat(path); err == nil {
				seen.mu.Lock()
				seen.times, seen.bytes = append(seen.times, time.Now()), append(seen.bytes, info.Size())
				seen.mu.Unlock()
			}
		}
	}()
	return seen
}

// at is the last size that was seen before an instant.
func (s *sizes) at(instant time.Time) (size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, at := range s.times {
		if i == 0 || at.Before(instant) {
			size = s.bytes[i]
		}
	}
	return size
}

// answered are the numbers that were promised since the last round.
func (c *powerCuts) answered() map[string]bool {
	nos := make(map[string]bool)
	for _, claim := range c.Claims[c.checked:] { // nobody buys now
		if no := c.OrderNo(claim); no != "" {
			nos[no] = true
		}
	}
	c.checked = len(c.Claims)
	return nos
}

// without are the numbers that have no row, and how many have one that failed.
func (c *powerCuts) without(nos map[string]bool) (missing map[string]bool, failed int) {
	c.t.Helper()
	db := c.tables(c.t)
	defer db.Close()
	rows, err := db.Query(`SELECT order_no, status FROM tb_seckill_order`)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	missing = make(map[string]bool)
	for no := range nos {
		missing[no] = true
	}
	for rows.Next() {
		var no string
		var status int
		if err := rows.Scan(&no, &status); err != nil {
			c.t.Fatal(err)
		}
		if nos[no] && status == 3 {
			failed++
		}
		delete(missing, no)
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	return missing, failed
}

// rest waits until nothing is under way: no entry waits, no instance remembers
// a promise, no ledger is being rebuilt, and all that for a while.
func (c *powerCuts) rest(nos map[string]bool) (missing map[string]bool, failed int) {
	c.t.Helper()
	const looks, pause = 5, 300 * time.Millisecond
	calm := 0
	var epoch uint64
	market.Eventually(c.t, "the site is at rest", func(ctx context.Context) bool {
		stats, err := c.Operator().Stats(ctx, asyncOne)
		quiet := err == nil && stats.Queue.Depth == 0 && stats.Epoch == epoch
		epoch = stats.Epoch
		if product, err := c.Operator().Product(ctx, asyncOne); err != nil || product.Rebuilding {
			quiet = false
		}
		for _, e := range c.engines {
			remembered, err := e.Metric(ctx, "seckill_promises_remembered")
			quiet = quiet && err == nil && remembered == 0
		}
		if !quiet {
			calm = 0
		}
		calm++
		market.Pause(ctx, pause)
		return calm > looks
	})
	return c.without(nos)
}
