package ledgerredis

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"
)

// watchTest is a watch with its own clock.
type watchTest struct {
	*testing.T
	watch
	now   time.Time
	beats int // of the live consumers
	found int // deaths
}

func newJudge(t *testing.T) *watchTest {
	return &watchTest{T: t, watch: watch{me: "me", silence: time.Second}, now: time.Now()}
}

// pass lets time pass, during which the named consumers send heartbeats. The heartbeats of the
// others do not change.
func (j *watchTest) pass(d time.Duration, still map[string]string, living ...string) {
	for step := time.Second / heartbeatsPerSilence; d > 0; d -= step {
		j.now, j.beats = j.now.Add(step), j.beats+1
		signs := map[string]string{"me": strconv.Itoa(j.beats)}
		for name, sign := range still {
			signs[name] = sign
		}
		for _, name := range living {
			signs[name] = strconv.Itoa(j.beats)
		}
		j.found += len(j.look(signs, nil, j.now))
	}
}

func (j *watchTest) wantDead(names ...string) {
	j.Helper()
	if got := j.dead(j.now); !slices.Equal(got, names) {
		j.Errorf("dead are %v, want %v", got, names)
	}
}

func TestWatch_SilentConsumerIsDeadAfterTheTimeout(t *testing.T) {
	j := newJudge(t)
	j.pass(time.Second, nil, "a", "b")
	j.pass(800*time.Millisecond, map[string]string{"a": "5"}, "b")
	j.wantDead()
	j.pass(400*time.Millisecond, map[string]string{"a": "5"}, "b")
	j.wantDead("a")
	if j.pass(time.Second, map[string]string{"a": "5"}, "b"); j.found != 1 {
		j.Errorf("one death was found %d times", j.found)
	}
	j.pass(200*time.Millisecond, nil, "a", "b") // the process was paused
	j.wantDead()
	if j.pass(2*time.Second, map[string]string{"a": "5"}, "b"); j.found != 2 {
		j.Errorf("two deaths were found %d times", j.found)
	}
}

func TestWatch_HeartbeatIsNotReadAsTime(t *testing.T) {
	j := newJudge(t)
	j.pass(3*time.Second, nil, "a")
	j.beats = -1000 // the server's clock is set back
	j.pass(3*time.Second, nil, "a")
	j.wantDead()
}

func TestWatch_ServerOutageRestartsTheTimeout(t *testing.T) {
	j := newJudge(t)
	j.pass(time.Second, nil, "a")
	j.now = j.now.Add(time.Minute)
	j.look(nil, errors.New("away"), j.now)
	j.pass(800*time.Millisecond, map[string]string{"a": "5"})
	j.wantDead()
	j.pass(400*time.Millisecond, map[string]string{"a": "5"})
	j.wantDead("a")
}

func TestWatch_HolderWithoutHeartbeatIsDead(t *testing.T) {
	j := newJudge(t)
	j.pass(time.Second, nil)
	j.holders(map[string]bool{"me": true, "ghost": true}, j.now)
	j.pass(1200*time.Millisecond, nil)
	j.wantDead("ghost")
	j.holders(nil, j.now) // returned to the queue
	j.pass(200*time.Millisecond, nil)
	j.wantDead()
}
