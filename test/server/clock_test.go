package server

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRedisClock_MovesAtOnceAndAfterRestart(t *testing.T) {
	r := Redis(t, RedisOptions{AppendFsync: "always", Clock: true})
	wantClock(t, r, 0)
	r.Must("SET", "short", "v", "EX", "600")
	r.MoveClock(-time.Hour)
	for range 2 {
		wantClock(t, r, -time.Hour)
		left, err := strconv.Atoi(r.Must("TTL", "short"))
		if most := int((time.Hour + 10*time.Minute).Seconds()); err != nil || left <= 600 || left > most {
			t.Errorf("with the clock set back by an hour a key has %d s left (%v)", left, err)
		}
		r.Kill()
		r.Start()
	}
	r.MoveClock(11 * time.Minute)
	wantClock(t, r, 11*time.Minute)
	if r.Must("GET", "short") != "" {
		t.Error("a key outlived its time")
	}
}

// wantClock checks that the server's clock differs from the machine's by want.
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
