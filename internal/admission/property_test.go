package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slidingLog is the naive form of the limiter's rule: a log of all passed events, and
// a check of every period that ends now.
type slidingLog struct {
	burst, interval int64
	passed          []int64
}

func (w *slidingLog) allow(now int64) bool {
	for i, since := range w.passed {
		count := int64(len(w.passed)-i) + 1 // from since to now, this one included
		if (count-w.burst)*w.interval > now-since {
			return false
		}
	}
	w.passed = append(w.passed, now)
	return true
}

// lastSecond is the log of one sliding window of a second, the usual meaning of
// "n a second".
type lastSecond struct {
	most   int
	passed []int64
}

func (s *lastSecond) allow(now int64) bool {
	for len(s.passed) > 0 && s.passed[0] <= now-int64(time.Second) {
		s.passed = s.passed[1:]
	}
	if len(s.passed) >= s.most {
		return false
	}
	s.passed = append(s.passed, now)
	return true
}

// rhythm draws pauses between events: bursts, steps of about an interval, and rests.
func rhythm(t *rapid.T, interval int64) []int64 {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Just(int64(0)), rapid.Int64Range(0, interval), rapid.Int64Range(interval-1, interval+1), rapid.Int64Range(0, 2*int64(time.Second)),
	), 1, 400).Draw(t, "pauses")
}

func TestLimiter_EqualsLogOfAllSlidingWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := rapid.IntRange(1, 50).Draw(t, "rate"), rapid.IntRange(1, 60).Draw(t, "burst")
		l, err := New(Options{PerSecond: float64(rate), Burst: burst, Capacity: ways})
		if err != nil {
			t.Fatal(err)
		}
		exact := &slidingLog{burst: int64(burst), interval: l.whole}
		now := start.UnixNano()
		for i, pause := range rhythm(t, l.whole) {
			now += pause
			if got, _ := l.Allow(TextKey("buyer"), time.Unix(0, now)); got != exact.allow(now) {
				t.Fatalf("event %d: the limiter says %v", i, got)
			}
		}
	})
}

func TestLimiter_NeverRefusesKeysWithinTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 50).Draw(t, "rate")
		l, err := New(Options{PerSecond: float64(rate), Capacity: ways})
		if err != nil {
			t.Fatal(err)
		}
		second := &lastSecond{most: rate}
		now := start.UnixNano()
		for i, pause := range rhythm(t, l.whole) {
			if now += pause; !second.allow(now) {
				continue // such an event is not sent
			}
			if ok, wait := l.Allow(TextKey("buyer"), time.Unix(0, now)); !ok {
				t.Fatalf("event %d was refused, for %s", i, wait)
			}
		}
	})
}

// most returns the largest number of instants within a period of this length. The
// instants are in order.
func most(instants []int64, length time.Duration) int {
	count, from := 0, 0
	for i, at := range instants {
		for instants[from] <= at-int64(length) {
			from++
		}
		count = max(count, i-from+1)
	}
	return count
}

// However the number of instances changes, no key gets a fresh budget: one instance
// never lets more pass than burst and rate allow it alone.
func TestShare_ChangeGivesNoNewBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 50).Draw(t, "rate")
		l, err := New(Options{PerSecond: float64(rate), Capacity: ways})
		if err != nil {
			t.Fatal(err)
		}
		shares := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 10).Draw(t, "shares")
		now := start.UnixNano()
		var passed []int64
		for i, pause := range rhythm(t, l.whole) {
			l.Share(shares[i%len(shares)])
			now += pause
			if ok, _ := l.Allow(TextKey("buyer"), time.Unix(0, now)); ok {
				passed = append(passed, now)
			}
		}
		for _, length := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
			if got, limit := most(passed, length), rate+rate*int(length/time.Second); got > limit {
				t.Fatalf("%d passed within %s at %d a second", got, length, rate)
			}
		}
	})
}
