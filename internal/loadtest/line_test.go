package loadtest

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

func TestLine_RateSpacesFirstCalls(t *testing.T) {
	l := newLine(noon, 3, 100)
	for i := range 3 {
		c, ok := l.take(noon)
		if want := noon.Add(time.Duration(i) * 10 * time.Millisecond); !ok || c.buyer != i || !c.due.Equal(want) {
			t.Errorf("call %d: %+v, %v", i, c, ok)
		}
	}
	if c, ok := l.take(noon); ok {
		t.Errorf("a fourth call of three buyers: %+v", c)
	}
}

func TestLine_WithoutRateAllAreDueAtOnce(t *testing.T) {
	l := newLine(noon, 2, 0)
	for range 2 {
		if c, _ := l.take(noon); !c.due.Equal(noon) {
			t.Errorf("due %v", c.due)
		}
	}
}

func TestLine_DueRetryGoesBeforeNewBuyers(t *testing.T) {
	l := newLine(noon, 10, 0)
	first, _ := l.take(noon)
	first.try, first.due = 1, noon.Add(time.Second)
	l.put(first)
	if c, _ := l.take(noon); c.buyer != 1 {
		t.Errorf("a retry that is not due went first: %+v", c)
	}
	if c, _ := l.take(noon.Add(time.Second)); c.buyer != 0 || c.try != 1 {
		t.Errorf("a due retry has to wait for new buyers: %+v", c)
	}
}

func TestLine_RetriesComeInOrder(t *testing.T) {
	l := newLine(noon, 3, 0)
	for i := range 3 {
		c, _ := l.take(noon)
		c.due = noon.Add(time.Duration(3-i) * time.Second)
		l.put(c)
	}
	for _, want := range []int{2, 1, 0} {
		if c, ok := l.take(noon); !ok || c.buyer != want {
			t.Errorf("got %+v, want buyer %d", c, want)
		}
	}
	if _, ok := l.take(noon); ok {
		t.Error("something is left")
	}
}

func TestBackoff_GrowsToBoundAndHonoursRetryAfter(t *testing.T) {
	for _, c := range []struct {
		try    int
		asked  time.Duration
		random float64
		want   time.Duration
	}{
		{0, 0, 0, 25 * time.Millisecond},
		{0, 0, 1, 50 * time.Millisecond},
		{3, 0, 0, 200 * time.Millisecond},
		{6, 0, 1, 2 * time.Second},
		{99, 0, 1, 2 * time.Second},
		{0, time.Second, 0, time.Second},
		{0, time.Second, 1, time.Second + 25*time.Millisecond},
	} {
		if got := backoff(c.try, c.asked, c.random); got != c.want {
			t.Errorf("backoff(%d, %s, %g) = %s, want %s", c.try, c.asked, c.random, got, c.want)
		}
	}
}

func TestClock_UsesShortestRoundTrip(t *testing.T) {
	const ahead = 250 * time.Millisecond
	now, probe := noon, 0
	c, err := readClock(func() time.Time { return now }, func() (time.Time, error) {
		probe++
		trip := 40 * time.Millisecond // slow there, quick back: half of it is wrong
		there := 39 * time.Millisecond
		if probe == 4 {
			trip, there = 2*time.Millisecond, time.Millisecond
		}
		server := now.Add(there + ahead)
		now = now.Add(trip)
		return server.Truncate(time.Millisecond), nil
	})
	if err != nil || c.trip != 2*time.Millisecond {
		t.Fatalf("trip %s, err %v", c.trip, err)
	}
	if off := (c.offset - ahead).Abs(); off > time.Millisecond {
		t.Errorf("offset %s, want %s", c.offset, ahead)
	}
	if got := c.local(noon); !got.Equal(noon.Add(-c.offset)) {
		t.Errorf("noon there is %s here", got)
	}
}

func TestStaleFrom_LeavesMarginBeforeExpiry(t *testing.T) {
	for _, c := range []struct{ lives, begun time.Duration }{
		{2 * time.Minute, 2*time.Minute - tokenMargin},
		{8 * time.Second, 6 * time.Second},
		{-time.Hour, -time.Hour},
	} {
		if got := staleFrom(noon, noon.Add(c.lives)).Sub(noon); got != c.begun {
			t.Errorf("a token that lives for %s is begun with for %s, want %s", c.lives, got, c.begun)
		}
	}
	// The server's clock is a minute ahead, so its noon is earlier here.
	c := &crowd{clock: clock{offset: time.Minute}}
	b := &buyer{pass: &pass{stale: noon}}
	if c.lacks(b, noon.Add(-2*time.Minute)) || !c.lacks(b, noon.Add(-time.Minute)) || c.lacks(new(buyer), noon) {
		t.Error("the end of a token is not the server's")
	}
}

func TestLastFetch_RushComesBeforeTokensExpire(t *testing.T) {
	c := &crowd{buyers: []buyer{{pass: &pass{ends: noon.Add(2 * time.Minute)}}}}
	for began, start := range map[time.Time]time.Time{
		noon.Add(-time.Minute): noon,                   // made before the start
		noon:                   noon.Add(-time.Second), // made after it
	} {
		if got := c.lastFetch(began, start).Sub(noon); got != 90*time.Second {
			t.Errorf("begun %s before the start: %s", start.Sub(began), got)
		}
	}
}

func TestForecast_ExtrapolatesFromDoneWork(t *testing.T) {
	if got := forecast(128, 1280*time.Millisecond, 1000); got != 10*time.Second {
		t.Errorf("1000 after 128 in 1.28s: %s", got)
	}
	if got := forecast(0, time.Second, 0); got != 0 {
		t.Errorf("nothing is left: %s", got)
	}
}

func TestChosen_SharesAreExactAndIndependent(t *testing.T) {
	const n = 100_000
	var repeat, settle, both int
	for i := range n {
		r, s := chosen(i, saltRepeat, 0.1), chosen(i, saltSettle, 0.5)
		if r {
			repeat++
		}
		if s {
			settle++
		}
		if r && s {
			both++
		}
	}
	near := func(got, want int) bool { return got > want*95/100 && got < want*105/100 }
	if !near(repeat, n/10) || !near(settle, n/2) || !near(both, n/20) {
		t.Errorf("of %d: %d repeat, %d settle, %d both", n, repeat, settle, both)
	}
	if chosen(1, saltRepeat, 0) || !chosen(1, saltRepeat, 1) {
		t.Error("none or all are not exact")
	}
}
