package queuetest_test

import (
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgertest"
	"seckill/internal/queue/queuetest"
)

func TestReferencePassesTheSuite(t *testing.T) {
	queuetest.Run(t, func(*testing.T) queuetest.Harness {
		r := ledgertest.NewReference()
		return queuetest.Harness{
			Queue:   r.Queue(),
			Publish: queuetest.ThroughLedger(func() ledger.Ledger { return r }),
		}
	})
}
