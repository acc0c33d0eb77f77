package main

import (
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// tally is what the crowd saw: latencies by answer, which is "accepted" or the
// code of a refusal, else the status.
type tally struct {
	started time.Time
	answers map[string]*kind
	failed  int
}

var accepted = []byte("accepted")

// kind is one kind of answer.
type kind struct {
	latencies *hdrhistogram.Histogram
	last      time.Time
}

// newLatencies counts microseconds up to a minute.
func newLatencies() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60_000_000, 3) }

func newTally() *tally {
	return &tally{started: time.Now(), answers: make(map[string]*kind)}
}

// count counts an answer that came at some instant to who waited since begun.
func (t *tally) count(a answer, begun, came time.Time) {
	name := a.code
	switch {
	case a.status/100 == 2:
		name = accepted
	case len(name) == 0:
		name = strconv.AppendInt(nil, int64(a.status), 10)
	}
	k := t.answers[string(name)]
	if k == nil {
		k = &kind{latencies: newLatencies()}
		t.answers[string(name)] = k
	}
	k.last = came
	k.latencies.RecordValue(came.Sub(begun).Microseconds())
}

// latencies are those of all answers.
func (t *tally) latencies() *hdrhistogram.Histogram {
	all := newLatencies()
	for _, k := range t.answers {
		all.Merge(k.latencies)
	}
	return all
}

func (t *tally) counts() map[string]int64 {
	counts := make(map[string]int64)
	for name, k := range t.answers {
		counts[name] = k.latencies.TotalCount()
	}
	return counts
}

// figures of one kind of answer, as -json prints them. PerSecond counts until
// the last of the kind came.
type figures struct {
	Count     int64   `json:"count"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
}

func (t *tally) writeJSON(w io.Writer, name string) error {
	all := make(map[string]figures)
	for name, k := range t.answers {
		l := k.latencies
		all[name] = figures{
			Count: l.TotalCount(), PerSecond: float64(l.TotalCount()) / max(k.last.Sub(t.started).Seconds(), 0.001),
			P50: milliseconds(l.ValueAtQuantile(50)), P99: milliseconds(l.ValueAtQuantile(99)), Max: milliseconds(l.Max()),
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"name": name, "answers": all, "failed": t.failed})
}

func milliseconds(us int64) float64 { return float64(us) / 1000 }
