package outage

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

// timing is how an outage was met.
type timing struct {
	// answer is what a shopper waited longest for an answer meanwhile.
	answer time.Duration
	// selling is how long after its end the last of all instances accepted an order
	// of the last of its products.
	selling time.Duration
}

func (m timing) kept(answer, selling time.Duration) bool {
	return m.answer <= answer && m.selling <= selling
}

// wantKept repeats an outage until one is met within the bounds that the engine
// promises. All of it runs on this machine, crowd and servers included, beside
// whatever else does: one late answer tells that somebody was held up, not who.
// An engine that keeps its bounds shows it in one whole outage, with every
// answer of the crowd and every instance and product in it; one that does not
// never will. No outage may be met much later.
func (s *site) wantKept(outage func() timing) {
	s.t.Helper()
	var late []timing
	for range outages {
		got := outage()
		s.t.Logf("the slowest answer of the outage took %v; all sold again after %v", got.answer, got.selling)
		if !got.kept(hard*answerWithin, hard*sellWithin) {
			s.t.Errorf("an outage was met with %+v", got)
		}
		if got.kept(answerWithin, sellWithin) {
			return
		}
		late = append(late, got)
	}
	s.t.Errorf("of %d outages none was met within %v and %v: %+v", outages, answerWithin, sellWithin, late)
}

// slowest is how long one waited for an answer of a while, at most.
func (s *site) slowest(from, to time.Time) time.Duration {
	a := s.trace.slowest(from, to)
	return a.Done.Sub(a.Called)
}

// wantAnswers wants every request to buy of a while to have been answered in
// time, as far as a loaded machine lets it.
func (s *site) wantAnswers(from, to time.Time) {
	s.t.Helper()
	slowest := s.trace.slowest(from, to)
	took := slowest.Done.Sub(slowest.Called)
	s.t.Logf("the slowest answer of the outage took %v", took)
	if took > answerWithin+slack {
		s.t.Errorf("%s waited %v for product %d (%s)", slowest.Buyer, took, slowest.Product, outcome(slowest))
	}
}

// sellsAll waits until every instance has accepted an order of every product
// that the crowd spares, and says how long after an instant the last of them was.
// Of what the store may sell, an order says nothing about the ledger.
func (s *site) sellsAll(ctx context.Context, since time.Time) (last time.Duration) {
	s.t.Helper()
	var probes sync.WaitGroup
	var mu sync.Mutex
	for _, id := range []uint32{spared, sparedShards, sparedDual, sparedGroup} {
		p, open := s.Products[id]
		if !open || p.Fallback != "" {
			continue
		}
		for i, e := range s.engines {
			if !e.Plays(engine.RoleShop) {
				continue
			}
			probes.Go(func() {
				sold := s.sellsAt(ctx, e, id)
				mu.Lock()
				defer mu.Unlock()
				if sold.IsZero() {
					s.t.Errorf("instance %d does not sell product %d after the outage", i, id)
				}
				last = max(last, sold.Sub(since))
			})
		}
	}
	probes.Wait()
	return last
}

// sellsAt asks one instance for a unit until that is promised, and says when it
// was; zero if it never is.
func (s *site) sellsAt(ctx context.Context, e *engine.Engine, product uint32) time.Time {
	c := s.NewClaim(s.NewBuyer(), product, engine.Purchase{Quantity: 1, Key: "again"})
	ctx, cancel := context.WithTimeout(ctx, market.SettleWithin)
	defer cancel()
	for s.SendTo(ctx, e, c) != nil {
		if !market.Pause(ctx, askEvery) {
			return time.Time{}
		}
	}
	return time.Now()
}

// memory is what the instances have resident, in bytes.
func (s *site) memory() []int64 {
	s.t.Helper()
	sizes := make([]int64, len(s.engines))
	for i, e := range s.engines {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.PID()))
		if err != nil {
			s.t.Fatal(err)
		}
		sizes[i] = resident(string(text))
	}
	return sizes
}

// resident is the line VmRSS of a process's status, in bytes.
func resident(status string) int64 {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return kilobytes << 10
			}
		}
	}
	return 0
}

// wantMemory wants the instances not to have grown much.
func (s *site) wantMemory(before []int64) {
	s.t.Helper()
	for i, now := range s.memory() {
		if now-before[i] > memoryMost {
			s.t.Errorf("instance %d grew from %d to %d MB while Redis was away", i, before[i]>>20, now>>20)
		}
	}
}
