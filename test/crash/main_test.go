// Package crash proves with the real binary that nothing is lost: it is killed
// at random instants and at every named point between two writes, stopped
// under load, starved of disk space and given a damaged journal, and the
// promises I1 to I8 are shown from the outside each time.
package crash

import (
	"context"
	"os"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

// settleWithin bounds every wait for the engine to come to rest.
const settleWithin = 60 * time.Second

// pause waits, and reports false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// eventually polls until what holds, and fails the test when it does not.
func eventually(t testing.TB, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	for !holds(ctx) {
		if !pause(ctx, 20*time.Millisecond) {
			t.Fatalf("not within %s: %s", settleWithin, what)
		}
	}
}

// untilAnswered repeats a request until it gets an answer that is not busy:
// what a polite client does. It returns that answer.
func untilAnswered(t testing.TB, what string, ask func(ctx context.Context) error) error {
	t.Helper()
	var err error
	eventually(t, what, func(ctx context.Context) bool {
		err = ask(ctx)
		return engine.Answered(err) && !temporary(err)
	})
	return err
}

// temporary reports whether an answer only asks to come again.
func temporary(err error) bool {
	switch engine.CodeOf(err) {
	case seckill.CodeBusy, seckill.CodeTooHot, seckill.CodeRateLimited:
		return true
	}
	return false
}
