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

// Pause waits, and reports false when ctx has ended.
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

// Eventually polls until what holds, and fails the test when it does not.
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

// Crowding is how much longer work takes on a machine on which other tests run: by
// how many more there are to run than four per core. A test with servers and
// instances has about as many of its own.
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

// UntilAnswered repeats a request until it gets an answer that is not busy:
// what a polite client does. It returns that answer.
func UntilAnswered(t testing.TB, what string, ask func(ctx context.Context) error) error {
	t.Helper()
	var err error
	Eventually(t, what, func(ctx context.Context) bool {
		err = ask(ctx)
		return engine.Answered(err) && !Temporary(err)
	})
	return err
}

// Temporary reports whether an answer only asks to come again.
func Temporary(err error) bool {
	switch engine.CodeOf(err) {
	case seckill.CodeBusy, seckill.CodeTooHot, seckill.CodeRateLimited:
		return true
	}
	return false
}
