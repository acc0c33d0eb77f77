package server

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRedisClock_IsMovedAtOnceAndOverItsLives(t *testing.T) {
	r := Redis(t, RedisOptions{AppendFsync: "always", Clock: true})
	wantClock(t, r, 0)
	r.Must("SET", "short", "v", "PX", "1500")
	r.MoveClock(-time.Hour)
	wantClock(t, r, -time.Hour)
	time.Sleep(1600 * time.Millisecond) // on Redis' own clock, which nothing signals
	if r.Must("GET", "short") == "" {
		t.Error("a key ran out, though the clock was set back")
	}
	r.Kill()
	r.Start()
	wantClock(t, r, -time.Hour)
	r.MoveClock(0)
	wantClock(t, r, 0)
	if r.Must("GET", "short") != "" {
		t.Error("a key outlived its time")
	}
}

// wantClock wants the server's clock to differ from the machine's by that much.
func wantClock(t *testing.T, r *RedisServer, want time.Duration) {
	t.Helper()
	before := time.Now()
	seconds, err := strconv.ParseInt(strings.Fields(r.Must("TIME"))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	got := time.Unix(seconds, 0)
	if early, late := before.Add(want-time.Second), time.Now().Add(want); got.Before(early) || got.After(late) {
		t.Errorf("the clock says %v, want %v to %v", got, early, late)
	}
}
