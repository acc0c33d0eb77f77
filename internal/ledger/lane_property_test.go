package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seckill/internal/ledger"
	"seckill/test/virtual"
)

// faultSteps are the things that can happen to a call. pass is the most likely.
func faultSteps(t *rapid.T) step {
	delay := time.Duration(rapid.IntRange(1, 5000).Draw(t, "delay_ms")) * time.Millisecond
	steps := []step{
		pass, pass, pass, pass, loseRequest, loseReply, notExecuted,
		slowRequest(delay), slowReply(delay), say(ledger.OutcomeGap, 1), say(ledger.OutcomeStale, 1),
		func(ctx context.Context, l ledger.Ledger, req ledger.Request) (ledger.Reply, error) {
			<-ctx.Done()
			return ledger.Reply{}, ctx.Err()
		},
	}
	return steps[rapid.IntRange(0, len(steps)-1).Draw(t, "fault")]
}

// bubbleTB hides the test's deadline, because it is in real time.
type bubbleTB struct{ testing.TB }

// Whatever happens to requests and replies, a write that was reported as applied is applied
// exactly once. One reported as not applied never is, and one with an unknown outcome is
// applied at most once.
func TestLane_ExactlyOnceUnderAnyFaults(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		rapid.Check(bubbleTB{t}, func(rt *rapid.T) {
			r := reference(t)
			l := &scripted{Ledger: r}
			for range rapid.IntRange(0, 40).Draw(rt, "faults") {
				l.steps = append(l.steps, faultSteps(rt))
			}
			lane := laneOn(l)
			type attempt struct {
				write ledger.Reserve
				err   error
			}
			var attempts []attempt
			for i := range rapid.IntRange(1, 15).Draw(rt, "calls") {
				wait := time.Duration(rapid.IntRange(1, 3000).Draw(rt, "wait_ms")) * time.Millisecond
				ctx, cancel := context.WithTimeout(context.Background(), wait)
				if rapid.IntRange(0, 3).Draw(rt, "probe") == 0 {
					_ = lane.Probe(ctx) // a probe is allowed at any time
					cancel()
					continue
				}
				w := reserveOne(i)
				start := time.Now()
				result, err := lane.Do(ctx, w)
				cancel()
				if time.Since(start) > wait {
					rt.Fatalf("Do took %v of %v", time.Since(start), wait)
				}
				if err == nil && !accepted(result, w) {
					rt.Fatalf("result of another call: %+v", result)
				}
				attempts = append(attempts, attempt{w, err})
			}
			l.mu.Lock()
			l.steps = nil
			l.mu.Unlock()
			last := reserveOne(1000)
			_, err := lane.Do(context.Background(), last)
			attempts = append(attempts, attempt{last, err})
			if err != nil {
				rt.Fatalf("the lane did not recover: %v", err)
			}
			virtual.Sleep(time.Minute) // let late messages arrive

			for i, a := range attempts {
				count := applied(t, r, a.write)
				switch {
				case a.err == nil && count != 1,
					errors.Is(a.err, ledger.ErrNotApplied) && count != 0,
					errors.Is(a.err, ledger.ErrUnknown) && count > 1,
					a.err != nil && errors.Is(a.err, ledger.ErrNotApplied) == errors.Is(a.err, ledger.ErrUnknown):
					rt.Fatalf("call %d: reported %v, applied %d times", i, a.err, count)
				}
			}
			if figures, _ := r.Read(context.Background(), testShard); !figures.Open {
				rt.Fatal("the lane made the shard believe in a loss")
			}
		})
	})
}
