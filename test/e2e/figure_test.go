package e2e

import (
	"fmt"
	"testing"

	"seckill/internal/api"
	"seckill/test/engine"
)

// figures are a product's figures without the counts of requests, because
// refusals change those too.
func figures(t *testing.T, e *engine.Engine, product uint32) api.Stats {
	t.Helper()
	var f api.Stats
	eventually(t, fmt.Sprintf("product %d has figures", product), func() bool {
		var err error
		if f, err = e.Operator().Stats(t.Context(), product); err != nil && !undecided(err) {
			t.Fatalf("stats of product %d: %v", product, err)
		}
		return err == nil
	})
	f.Requests = nil
	return f
}

// same compares the figures that count units.
func same(a, b api.Stats) bool {
	return a.State == b.State && a.Epoch == b.Epoch && a.Offered == b.Offered &&
		a.Ledger == b.Ledger && a.Store == b.Store && a.Queue.Depth == b.Queue.Depth
}

// unchanged fails the test if a product's figures have changed.
func unchanged(t *testing.T, e *engine.Engine, product uint32, before api.Stats) {
	t.Helper()
	if after := figures(t, e, product); !same(before, after) {
		t.Errorf("the figures of product %d changed:\n%+v\n%+v", product, before, after)
	}
}

// settled waits until a product's figures are as wanted.
func settled(t *testing.T, e *engine.Engine, product uint32, what string, holds func(api.Stats) bool) {
	t.Helper()
	var last api.Stats
	defer func() {
		if t.Failed() {
			t.Logf("figures: %+v", last)
		}
	}()
	eventually(t, what, func() bool {
		last = figures(t, e, product)
		return holds(last)
	})
}

// balanced reconciles a product: every promise holds.
func balanced(t *testing.T, e *engine.Engine, product uint32) {
	t.Helper()
	report, err := e.Operator().Reconcile(t.Context(), product, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		t.Errorf("reconcile product %d: %+v (%v)", product, report, err)
	}
}
