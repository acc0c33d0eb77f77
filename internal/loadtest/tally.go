package loadtest

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill"
)

// The names of answers without a code.
const (
	answerAccepted = "accepted"
	answerNone     = "no_answer"  // refused or broken connection, timeout
	answerStrange  = "unreadable" // not from the engine, such as a proxy's 502 or 504
)

// Snapshot is the progress of the crowd.
type Snapshot struct {
	Elapsed  time.Duration
	Sent     int64
	Accepted int64
	SoldOut  int64
	Others   int64
	InFlight int64
	Waiting  int64   // for their retry
	Rate     float64 // requests per second since the last snapshot
}

func (s Snapshot) String() string {
	return fmt.Sprintf("%4.0fs  sent %d  accepted %d  sold_out %d  others %d  in flight %d  waiting %d  %.0f/s",
		s.Elapsed.Seconds(), s.Sent, s.Accepted, s.SoldOut, s.Others, s.InFlight, s.Waiting, s.Rate)
}

// tally counts the answers.
type tally struct {
	sent, inFlight, waiting atomic.Int64
	fetched                 atomic.Int64 // purchase tokens, during the rush

	mu       sync.Mutex
	answers  map[string]int64
	accepted *hdrhistogram.Histogram
	refused  *hdrhistogram.Histogram
}

// Latencies are in microseconds, with three significant digits. Ten minutes are
// far more than a request can take.
const latencyMost = int64(10 * time.Minute / time.Microsecond)

func newTally() *tally {
	return &tally{
		answers:  make(map[string]int64),
		accepted: hdrhistogram.New(1, latencyMost, 3),
		refused:  hdrhistogram.New(1, latencyMost, 3),
	}
}

func (t *tally) count(name string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers[name]++
	us := min(max(took.Microseconds(), 1), latencyMost)
	switch name {
	case answerAccepted:
		_ = t.accepted.RecordValue(us) // cannot fail: the value is within the bounds
	case answerNone, answerStrange: // no answer, no latency
	default:
		_ = t.refused.RecordValue(us)
	}
}

func (t *tally) snapshot(before Snapshot, elapsed time.Duration) Snapshot {
	s := Snapshot{Elapsed: elapsed, Sent: t.sent.Load(), InFlight: t.inFlight.Load(), Waiting: t.waiting.Load()}
	t.mu.Lock()
	for name, n := range t.answers {
		switch name {
		case answerAccepted:
			s.Accepted += n
		case string(seckill.CodeSoldOut):
			s.SoldOut += n
		default:
			s.Others += n
		}
	}
	t.mu.Unlock()
	if past := (elapsed - before.Elapsed).Seconds(); past > 0 {
		s.Rate = float64(s.Sent-before.Sent) / past
	}
	return s
}

func (t *tally) byName() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.answers)
}

// Latency is the distribution of latencies, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(percentile float64) float64 { return float64(h.ValueAtPercentile(percentile)) / 1000 }
	return Latency{Count: h.TotalCount(), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000}
}
