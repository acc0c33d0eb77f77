package market

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"seckill"
	"seckill/test/engine"
)

// SettleWithin bounds every wait for the engine to come to rest.
const SettleWithin = 60 * time.Second

// Pause waits. It returns false if ctx ended.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Eventually polls until holds returns true. It fails the test after
// SettleWithin.
func Eventually(t testing.TB, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), SettleWithin)
	defer cancel()
	for !holds(ctx) {
		if !Pause(ctx, 20*time.Millisecond) {
			t.Fatalf("not within %s: %s", SettleWithin, what)
		}
	}
}

// Crowding is the factor by which work is slower because other tests run: the
// load divided by four threads per core, and at least 1. A test with servers and
// instances has about four threads per core itself.
func Crowding(t testing.TB) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	var load float64
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		t.Fatalf("read the load: %v", err)
	}
	return max(1, load/float64(4*runtime.NumCPU()))
}

// UntilAnswered repeats a request until the answer is not busy, as clients
// should. It returns that answer.
func UntilAnswered(t testing.TB, what string, ask func(ctx context.Context) error) error {
	t.Helper()
	var err error
	Eventually(t, what, func(ctx context.Context) bool {
		err = ask(ctx)
		return engine.Answered(err) && !Temporary(err)
	})
	return err
}

// Temporary reports whether the answer asks the client to retry.
func Temporary(err error) bool {
	switch engine.CodeOf(err) {
	case seckill.CodeBusy, seckill.CodeTooHot, seckill.CodeRateLimited:
		return true
	}
	return false
}
