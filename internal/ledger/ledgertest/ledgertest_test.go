package ledgertest_test

import (
	"testing"

	"seckill/internal/ledger/ledgertest"
)

func TestReferencePassesTheSuite(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Harness {
		r := ledgertest.NewReference()
		harness := ledgertest.Harness{Ledger: r, Queue: r.Queue()}
		// The reference is not durable, so a restart loses nothing.
		harness.Reopen = func(*testing.T) ledgertest.Harness { return harness }
		return harness
	})
}
