package ledgermem

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgertest"
	"seckill/internal/queue/queuetest"
)

func TestLedger_Conforms(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) ledgertest.Harness {
		return harness(t, newPath(t))
	})
}

// Continuous compaction must not be visible.
func TestLedger_ConformsWhileCompacting(t *testing.T) {
	t.Parallel()
	opt := Options{CompactRows: 3}
	ledgertest.Run(t, func(t *testing.T) ledgertest.Harness {
		return harnessWith(t, newPath(t), opt)
	})
}

func TestQueue_Conforms(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		return queueHarness(t, newPath(t), Options{})
	})
}

func TestQueue_ConformsWhileCompacting(t *testing.T) {
	t.Parallel()
	opt := Options{CompactRows: 3}
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		return queueHarness(t, newPath(t), opt)
	})
}

func queueHarness(t *testing.T, path string, opt Options) queuetest.Harness {
	l := start(t, path, opt)
	current := l
	publish := queuetest.ThroughLedger(func() ledger.Ledger { return current })
	var harness func() queuetest.Harness
	harness = func() queuetest.Harness {
		return queuetest.Harness{
			Queue: current.Queue(), Publish: publish,
			Reopen: func(t *testing.T) queuetest.Harness {
				current = start(t, crash(t, current), opt)
				return harness()
			},
		}
	}
	return harness()
}

func harness(t *testing.T, path string) ledgertest.Harness { return harnessWith(t, path, Options{}) }

func harnessWith(t *testing.T, path string, opt Options) ledgertest.Harness {
	l := start(t, path, opt)
	return ledgertest.Harness{
		Ledger: l, Queue: l.Queue(), CallersDie: true,
		Reopen: func(t *testing.T) ledgertest.Harness { return harnessWith(t, crash(t, l), opt) },
	}
}

// start opens a ledger that is shut down at the end of the test.
func start(t testing.TB, path string, opt Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), path, opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
	return l
}

// crash copies the files as a killed process leaves them, and returns the copy's path. No call
// may be running.
func crash(t testing.TB, l *Ledger) string {
	t.Helper()
	l.growth.cycle.Lock() // no chores while copying
	defer l.growth.cycle.Unlock()
	path := newPath(t)
	for _, suffix := range []string{"", "-wal"} {
		copyFile(t, l.journal.path+suffix, path+suffix)
	}
	return path
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}
