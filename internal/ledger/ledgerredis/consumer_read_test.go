package ledgerredis

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
)

func TestABucketIsReadAsOftenAsItHasEntries(t *testing.T) {
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	var s schedule
	after := func(passed time.Duration, arrivals ...arrival) time.Duration {
		now = now.Add(passed)
		s.found(3, now, arrivals)
		return s[3].due.Sub(now)
	}
	one := arrival{Delivery: queue.Delivery{Entry: seckill.Entry{Claims: make([]seckill.Claim, 8)}}}
	if got := after(0, one); got != 0 {
		t.Errorf("with entries, it is read after %v", got)
	}
	for range 10 {
		if got := after(10 * time.Millisecond); got != hotEvery {
			t.Errorf("run dry just now, it is read after %v", got)
		}
	}
	now = now.Add(hotFor)
	last := hotEvery
	for range 20 {
		got := after(last)
		if got < last || got > coldEvery {
			t.Errorf("idle, it is read after %v, and before that after %v", got, last)
		}
		last = got
	}
	if last != coldEvery {
		t.Errorf("idle for long, it is read after %v", last)
	}
	if got := after(coldEvery, one); got != 0 {
		t.Errorf("awake again, it is read after %v", got)
	}
}

func TestBucketsShareTheClaimsThatAreAskedFor(t *testing.T) {
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name           string
		due, max, want int
		claims         float64
	}{
		{"one bucket gives all", 1, 500, 26, 20},
		{"one bucket of large entries", 1, 10, 1, 64},
		{"every bucket may give one", buckets, 500, 1, 20},
		{"no bucket gives too much at once", 1, 1 << 20, readMost, 1},
		{"nothing is known yet", 2, 64, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s schedule
			for i := range s {
				s[i].claims = c.claims
				if i >= c.due {
					s[i].due = now.Add(time.Millisecond)
				}
			}
			which, counts := s.due(now, c.max)
			if len(which) != c.due || counts[0] != c.want {
				t.Errorf("%v, %v", which, counts)
			}
		})
	}
}
