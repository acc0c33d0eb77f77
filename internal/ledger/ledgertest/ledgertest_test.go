package ledgertest_test

import (
	"testing"

	"seckill/internal/ledger/ledgertest"
)

func TestReferencePassesTheSuite(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Harness {
		r := ledgertest.NewReference()
		harness := ledgertest.Harness{Ledger: r, Queue: r.Queue()}
		// Nothing of it is durable, so a restart is one that lost nothing.
		harness.Reopen = func(*testing.T) ledgertest.Harness { return harness }
		return harness
	})
}
