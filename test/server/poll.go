package server

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// poll waits until check returns no error. It fails the test after readyWithin.
func poll(t testing.TB, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.After(readyWithin)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: not within %s: %v", what, readyWithin, err)
		case <-tick.C:
		}
	}
}

// wantField checks a line "field:value" of a reply to INFO.
func wantField(r *RedisServer, field, want string, info ...string) error {
	reply, err := r.Cmd(info...)
	if err != nil {
		return err
	}
	if got := infoField(reply, field); got != want {
		return fmt.Errorf("%s: %s is %q, not %q", r.Addr(), field, got, want)
	}
	return nil
}

// infoField is the value of a line "field:value"; "" if there is none.
func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
