package sink

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSchedule_Next(t *testing.T) {
	plan := schedule{time.Second, 10 * time.Second, time.Minute} // tries at 0, 1 s, 11 s and 71 s
	cases := []struct {
		name     string
		attempts int
		since    time.Duration
		want     time.Duration
		again    bool
	}{
		{"after the first try", 1, 0, time.Second, true},
		{"after the second", 2, time.Second, 10 * time.Second, true},
		{"a slow try shortens the wait", 2, 4 * time.Second, 7 * time.Second, true},
		{"early tries use up nothing", 9, 2 * time.Second, 9 * time.Second, true},
		{"after the last", 4, 71 * time.Second, 0, false},
		{"time without tries uses up none", 1, time.Hour, time.Second, true},
		{"and the next", 3, time.Hour, time.Minute, true},
		{"after the last try", 4, time.Hour, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wait, again := plan.next(c.attempts, c.since, 0)
			if wait != c.want || again != c.again {
				t.Errorf("got %s, %v, want %s, %v", wait, again, c.want, c.again)
			}
			late, _ := plan.next(c.attempts, c.since, 1)
			if late < wait || late > wait+6*time.Second {
				t.Errorf("with jitter it is %s", late)
			}
		})
	}
	if _, again := (schedule{}).next(1, 0, 0); again {
		t.Error("a schedule without waits has a second try")
	}
}

func TestDefaultDelays_TakeAboutADay(t *testing.T) {
	var sum time.Duration
	for _, delay := range DefaultDelays {
		sum += delay
	}
	if sum < 24*time.Hour || sum > 30*time.Hour {
		t.Errorf("the tries take %s", sum)
	}
}

// fake is a target that counts.
type fake struct{ delivered, closed int }

func (f *fake) Deliver(context.Context, *Message) (string, error) {
	f.delivered++
	return "stored", nil
}
func (f *fake) Close(context.Context) error { f.closed++; return nil }

func TestLazy_OpensWithTheFirstDeliveryAndRetries(t *testing.T) {
	target, opens, errAway := &fake{}, 0, errors.New("broker is away")
	lazy := &Lazy{Open: func(context.Context) (Target, error) {
		if opens++; opens == 1 {
			return nil, errAway
		}
		return target, nil
	}}
	if _, err := lazy.Deliver(t.Context(), &Message{}); !errors.Is(err, errAway) {
		t.Errorf("error is %v", err)
	}
	for range 2 {
		if status, err := lazy.Deliver(t.Context(), &Message{}); err != nil || status != "stored" {
			t.Errorf("status %q, error %v", status, err)
		}
	}
	if opens != 2 || target.delivered != 2 {
		t.Errorf("opened %d times, delivered %d", opens, target.delivered)
	}
	if err := lazy.Close(t.Context()); err != nil || target.closed != 1 {
		t.Errorf("closed %d times, error %v", target.closed, err)
	}
	if _, err := lazy.Deliver(t.Context(), &Message{}); !errors.Is(err, errClosed) {
		t.Errorf("error after Close is %v", err)
	}
	if err := (&Lazy{}).Close(t.Context()); err != nil {
		t.Errorf("close of a target that was never opened: %v", err)
	}
}
