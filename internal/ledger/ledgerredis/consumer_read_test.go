package ledgerredis

import (
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/queue"
)

func TestSchedule_ReadsBusyBucketsMoreOften(t *testing.T) {
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	var s schedule
	after := func(passed time.Duration, arrivals ...arrival) time.Duration {
		now = now.Add(passed)
		s.found(reading{3, 1}, now, arrivals)
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

func TestSchedule_BucketsShareTheRequestedClaims(t *testing.T) {
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name         string
		full, others int // buckets that must be read
		max          int
		claims       float64 // per entry
		want         []int
	}{
		{"one bucket gives all", 1, 0, 500, 20, []int{26}},
		{"one bucket of large entries", 1, 0, 10, 64, []int{1}},
		{"no bucket gives too much at once", 1, 0, 1 << 20, 1, []int{readMost}},
		{"few of those with a backlog give all", 8, 0, 500, 20, []int{13, 13}},
		{"the others give a little", 1, 3, 400, 20, []int{21, 6, 6, 6}},
		{"nothing is known yet", 0, 2, 64, 0, []int{3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s schedule
			for i := range s {
				s[i] = plan{claims: c.claims, full: i < c.full}
				if i >= c.full+c.others {
					s[i].due = now.Add(time.Millisecond)
				}
			}
			var got []int
			for _, r := range s.due(now, c.max) {
				got = append(got, r.count)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("entries asked for: %v, want %v", got, c.want)
			}
		})
	}
}

func TestSchedule_BucketsWithABacklogTakeTurns(t *testing.T) {
	now := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	var s schedule
	for i := range s {
		s[i] = plan{full: true, claims: 1}
	}
	seen := make(map[int]int)
	for range 2 * buckets / focusMost {
		now = now.Add(time.Microsecond)
		for _, r := range s.due(now, 2) {
			seen[r.bucket]++
			s.found(r, now, make([]arrival, r.count))
		}
	}
	for bucket := range buckets {
		if seen[bucket] != 2 {
			t.Errorf("bucket %d was read %d times", bucket, seen[bucket])
		}
	}
}
