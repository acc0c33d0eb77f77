package storesql

import (
	"testing"
	"time"
)

// This process's clock is five minutes off. Now follows the server's clock.
func TestServerClock_IgnoresTheLocalClock(t *testing.T) {
	const off = 5 * time.Minute
	c := newServerClock()
	at := func() time.Duration { return c.now().Sub(time.Now().Add(off)).Abs() }
	elapsed := time.Since(c.start)
	c.addReading(time.Now().Add(off), elapsed, elapsed)
	if wrong := at(); wrong > time.Second {
		t.Fatalf("%v wrong", wrong)
	}
}

func TestServerClock_ReadingMovesItAsLittleAsPossible(t *testing.T) {
	server := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		zero          time.Duration // the estimate so far, minus the server's true time at start
		sent, heardAt time.Duration // a reading taken between these times gives server + said
		said          time.Duration
		want          time.Duration
	}{
		{"possible", 3 * ms, 100 * ms, 110 * ms, 105 * ms, 3 * ms},
		{"too early", -40 * ms, 100 * ms, 110 * ms, 105 * ms, -5 * ms},
		{"too late", 40 * ms, 100 * ms, 110 * ms, 105 * ms, 5 * ms},
		{"a step forward", 0, 100 * ms, 102 * ms, time.Hour, time.Hour - 102*ms},
		{"a step back", 0, 100 * ms, 102 * ms, -time.Hour, -time.Hour - 100*ms},
	} {
		clock := &serverClock{start: time.Now(), zero: server.Add(c.zero), any: true}
		clock.addReading(server.Add(c.said), c.sent, c.heardAt)
		if got := clock.zero.Sub(server); got != c.want {
			t.Errorf("%s: the clock is at %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNow_IsMariaDBsClock(t *testing.T) {
	s := openMaria(t)
	ask := func() (micros int64) {
		err := s.db.read(t.Context(), func(r *session) error {
			_, err := r.row(t.Context(), sqlServerClock, nil, &micros)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return micros / 1000
	}
	before := ask()
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := ask()
	// The result is as exact as the reading, which took a moment too.
	const slack = 50
	if ms := now.UnixMilli(); ms < before-slack || ms > after+slack {
		t.Errorf("the store says %d, the server %d to %d", ms, before, after)
	}
	if now.Location() != time.UTC {
		t.Errorf("the time is in %v", now.Location())
	}
}
