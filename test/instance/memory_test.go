package instance

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
	"seckill/test/server"
)

const (
	// The crowd sends so many requests a second, answered or not: as many as two
	// cores can make beside everything else, and some hundred times what is
	// needed to keep every line of a frozen Redis full.
	crowdRate = 800
	// crowdMost bounds those under way. With every answer in its second it is
	// never reached.
	crowdMost = 8 * crowdRate
	// first is when all that has a bound has reached it; then is how much longer
	// the crowd comes.
	first = 3 * time.Second
	then  = 6 * time.Second
	// eachMost is what an instance may need for each request that waits, with its
	// connection. A machine that is held up has many wait at once.
	eachMost = 32 << 10
	// baseMost is what it may need besides: a full queue of every product, and
	// what the collector has not taken back.
	baseMost = 48 << 20
	// noise is by how much what a process has resident differs for no reason but
	// the moment of its collections, and keptMost what a request may leave behind.
	// A goroutine that waits for Redis, with what it was given, is several times
	// as much.
	noise    = 24 << 20
	keptMost = 512
	// lingerMost is how many goroutines more than before the crowd, those of its
	// connections aside, may be there when all were answered and Redis is still
	// away: those that try to reach it.
	lingerMost = 200
)

// Redis is frozen, and shoppers come at their own pace, whether those before
// them were answered or not: what they leave behind is bounded by what waits at
// once, and does not grow with how many came.
func TestWithRedisFrozenMemoryDoesNotGrowWithTheCrowd(t *testing.T) {
	t.Parallel()
	redis := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	settings := engine.Join(engine.OnRedis(redis.Addr()), engine.OnStore(server.SharedMariaDB(t).NewDatabase(t)))
	e := engine.New(t, engine.Options{Settings: settings})
	e.Through(func(http.RoundTripper) http.RoundTripper { // in which nobody waits for a connection, or makes one for each request
		return &http.Transport{MaxIdleConnsPerHost: crowdMost, IdleConnTimeout: time.Minute}
	})
	e.Start()
	const products = 8
	for id := uint32(1); id <= products; id++ {
		openSale(t, e, engine.Product{ID: id, Stock: 1000, Shards: 1 + int(id%2)*7, Strategy: strategyOf(id)})
	}
	no := buys(t, e, 1, "early")
	await(t, e, "early", no, "pending")

	waiting := func() float64 { return metric(t, e, "go_goroutines") }
	begun, calm := resident(t, e), waiting()
	redis.Pause()
	var most int64 // at once; each has a connection, which stays
	for range promiseTries {
		crowd := &openCrowd{e: e, products: products, order: no}
		few := crowd.run(t.Context(), first)
		early, sent := resident(t, e), crowd.sent.Load()
		many := crowd.run(t.Context(), then)
		late, more := resident(t, e), crowd.sent.Load()-sent
		crowd.under.Wait()
		most = max(most, few, many)
		t.Logf("%d MB; %d MB after %d requests, %d at once; %d MB after %d more, %d at once; answers: %v",
			begun>>20, early>>20, sent, few, late>>20, more, many, crowd.counts())
		if grown := max(early, late) - begun; grown > baseMost+most*eachMost {
			t.Errorf("it grew by %d MB", grown>>20)
		}
		if kept := late - early; kept > noise+more*keptMost+max(0, many-few)*eachMost {
			t.Errorf("%d requests left %d MB behind", more, kept>>20)
		}
		heldUp := max(few, many) > crowdRate // the machine was
		if !heldUp && (crowd.refused.Load() > 0 || crowd.answers(noAnswer) > 0) {
			t.Errorf("%d requests were not sent for want of room, %d not answered", crowd.refused.Load(), crowd.answers(noAnswer))
		}
		// Redis is frozen still. A connection's goroutine outlives its requests.
		until(t, "nobody waits any more for those who were answered", func() bool {
			return waiting() <= calm+float64(most)+lingerMost
		})
		if !heldUp {
			break // otherwise room for that hides what was left behind
		}
	}
	redis.Resume()
	for id := uint32(1); id <= products; id++ {
		buys(t, e, id, "after")
	}
}

// strategyOf has half of the products in several shards.
func strategyOf(id uint32) string {
	if id%2 == 1 {
		return string(seckill.StrategySharded)
	}
	return string(seckill.StrategyAsync)
}

// openCrowd sends requests at a rate, without waiting for answers: purchases,
// and reads that ask the ledger.
type openCrowd struct {
	e        *engine.Engine
	products uint32
	order    string // of somebody else, for which the ledger is asked

	under         sync.WaitGroup
	waiting       atomic.Int64
	sent, refused atomic.Int64
	codes         sync.Map // seckill.Code ► *atomic.Int64
}

// run sends for a while, and says how many were under way at once.
func (c *openCrowd) run(ctx context.Context, lasting time.Duration) (most int64) {
	began := time.Now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for sent := int64(0); time.Since(began) < lasting; <-tick.C {
		// What a held-up machine did not send in time it sends now.
		for due := int64(time.Since(began) * crowdRate / time.Second); sent < due; sent++ {
			if c.waiting.Load() >= crowdMost {
				c.refused.Add(1)
				continue
			}
			n := c.sent.Add(1)
			most = max(most, c.waiting.Add(1))
			c.under.Go(func() {
				defer c.waiting.Add(-1)
				c.count(c.ask(ctx, n))
			})
		}
	}
	return most
}

func (c *openCrowd) ask(ctx context.Context, n int64) (err error) {
	buyer := c.e.Buyer(fmt.Sprintf("crowd-%d", n))
	switch n % 4 {
	case 0:
		_, err = buyer.Order(ctx, c.order)
	case 1:
		_, err = buyer.List(ctx)
	default:
		_, err = buyer.Buy(ctx, 1+uint32(n)%c.products, engine.Purchase{Quantity: 1, Key: "once"})
	}
	return err
}

func (c *openCrowd) count(err error) {
	code := engine.CodeOf(err)
	if !engine.Answered(err) {
		code = noAnswer
	}
	n, _ := c.codes.LoadOrStore(code, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

func (c *openCrowd) answers(code seckill.Code) int64 { return c.counts()[code] }

func (c *openCrowd) counts() map[seckill.Code]int64 {
	counts := make(map[seckill.Code]int64)
	c.codes.Range(func(code, n any) bool {
		counts[code.(seckill.Code)] = n.(*atomic.Int64).Load()
		return true
	})
	return counts
}

// resident is what an instance has in memory, in bytes.
func resident(t *testing.T, e *engine.Engine) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.PID()))
	must(t, "read the memory of the process", err)
	found := regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		t.Fatal("the memory of the process is not told")
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	must(t, "read the memory of the process", err)
	return kilobytes << 10
}
