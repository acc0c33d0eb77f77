package admission

import (
	"testing"
	"time"
)

// flood sends an event to each limiter every millisecond and returns how many events
// passed in all.
func flood(from time.Time, length time.Duration, limiters ...*Limiter) (passed int) {
	for at := time.Duration(0); at < length; at += time.Millisecond {
		for _, l := range limiters {
			if ok, _ := l.Allow(TextKey("buyer"), from.Add(at)); ok {
				passed++
			}
		}
	}
	return passed
}

func TestShare_InstancesTogetherAllowTheRate(t *testing.T) {
	for _, tc := range []struct {
		name      string
		rate      float64
		instances int
		want      int // in ten seconds, after a rest
	}{
		{"one", 20, 1, 20 + 199},
		{"two", 20, 2, 20 + 198},
		{"four", 20, 4, 20 + 196},
		{"as many as the rate", 20, 20, 20 + 180},
		// Each instance allows MinShare, so that none starves a key.
		{"more than the rate", 5, 20, 20 * 10},
		{"a rate below MinShare stays", 0.5, 4, 4 * 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []*Limiter
			for range tc.instances {
				l := open(t, Options{PerSecond: tc.rate})
				l.Share(tc.instances)
				all = append(all, l)
			}
			if got := flood(start, 10*time.Second, all...); got != tc.want {
				t.Errorf("%d passed in ten seconds, want %d", got, tc.want)
			}
		})
	}
}

// If half of the burst is used and the rate is halved, half of the smaller burst is
// used.
func TestShare_UsedBudgetStaysUsed(t *testing.T) {
	for _, tc := range []struct {
		name            string
		before, after   int
		first, thenMore int
	}{
		{"one instance more", 1, 2, 10, 5},
		{"one instance fewer", 2, 1, 5, 10},
		{"nothing is left", 1, 2, 20, 0},
		{"nothing is left, and one fewer", 2, 1, 10, 0},
		{"no change", 2, 2, 5, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := open(t, Options{PerSecond: 20})
			l.Share(tc.before)
			for i := range tc.first {
				if ok, _ := l.Allow(TextKey("buyer"), start); !ok {
					t.Fatalf("event %d was refused", i)
				}
			}
			l.Share(tc.after)
			more := 0
			for range 100 {
				if ok, _ := l.Allow(TextKey("buyer"), start); ok {
					more++
				}
			}
			if more != tc.thenMore {
				t.Errorf("%d more passed, want %d", more, tc.thenMore)
			}
		})
	}
}

func TestShare_OffStaysOff(t *testing.T) {
	for _, l := range []*Limiter{nil, open(t, Options{})} {
		l.Share(3)
		if ok, _ := l.Allow(TextKey("buyer"), start); !ok {
			t.Error("refused")
		}
	}
}

func TestSeconds_RoundsUp(t *testing.T) {
	for wait, want := range map[time.Duration]int64{0: 1, 10 * time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 9500 * time.Millisecond: 10} {
		if got := Seconds(wait); got != want {
			t.Errorf("%s is %d s, want %d", wait, got, want)
		}
	}
}
