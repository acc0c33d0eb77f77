package outage

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"seckill/test/market"
)

// wantAnswers wants every request to buy of a while to have been answered in
// time.
func (s *site) wantAnswers(from, to time.Time) {
	s.t.Helper()
	slowest := s.trace.slowest(from, to)
	took := slowest.Done.Sub(slowest.Called)
	s.t.Logf("the slowest answer of the outage took %v", took)
	if took > answerWithin+slack {
		s.t.Errorf("%s waited %v for product %d (%s)", slowest.Buyer, took, slowest.Product, outcome(slowest))
	}
}

// wantSelling wants an order of each product of the ledger soon after.
func (s *site) wantSelling(ctx context.Context, since time.Time) {
	s.t.Helper()
	// Those who look here are not those of the crowd: what the crowd asks for
	// may be sold out, or be beyond their limits.
	for time.Since(since) < market.SettleWithin {
		if sold := s.trace.accepted(since, time.Now(), inLedger...); len(sold) > 0 {
			s.t.Logf("the first order after the outage was accepted after %v", sold[0].Done.Sub(since))
			if late := sold[0].Done.Sub(since); late > sellWithin+slack {
				s.t.Errorf("the first order after the outage was accepted after %v", late)
			}
			return
		}
		if !market.Pause(ctx, 10*time.Millisecond) {
			return
		}
	}
	s.t.Error("nothing is sold after the outage")
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
