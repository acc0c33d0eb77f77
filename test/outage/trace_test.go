package outage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill/test/engine"
	"seckill/test/market"
)

// trace is the history of all purchases that were sent, as the crowd saw it.
type trace struct {
	mu   sync.Mutex
	acts []market.Act
}

func (h *trace) add(a market.Act) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts = append(h.acts, a)
}

// all are the acts so far.
func (h *trace) all() []market.Act {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.acts)
}

// slowest is the act that took longest of those called in a while.
func (h *trace) slowest(from, to time.Time) (slowest market.Act) {
	for _, a := range h.all() {
		if !a.Called.Before(from) && a.Called.Before(to) && a.Done.Sub(a.Called) > slowest.Done.Sub(slowest.Called) {
			slowest = a
		}
	}
	return slowest
}

// accepted are the promises for which one asked in a while, of some products.
func (h *trace) accepted(from, to time.Time, products ...uint32) (found []market.Act) {
	for _, a := range h.all() {
		if a.Err == nil && slices.Contains(products, a.Product) && !a.Called.Before(from) && a.Called.Before(to) {
			found = append(found, a)
		}
	}
	return found
}

// outcome is how an act ended, in a word.
func outcome(a market.Act) string {
	switch {
	case a.Err == nil:
		return "accepted"
	case !engine.Answered(a.Err):
		return "no_answer"
	}
	return string(engine.CodeOf(a.Err))
}

// counts is how many acts ended how.
func (h *trace) counts() map[string]int {
	counts := make(map[string]int)
	for _, a := range h.all() {
		counts[outcome(a)]++
	}
	return counts
}

func (h *trace) summary() string {
	counts := h.counts()
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(words, ", ")
}
