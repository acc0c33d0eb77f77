package shard_test

import (
	"context"
	"path/filepath"
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/ledger/ledgertest"
	"seckill/test/shard"
)

func TestShardsOfTheReference(t *testing.T) {
	shard.Run(t, func(*testing.T) ledger.Ledger { return ledgertest.NewReference() })
}

func TestShardsOfTheEmbeddedLedger(t *testing.T) {
	shard.Run(t, func(t *testing.T) ledger.Ledger {
		embedded, err := ledgermem.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), ledgermem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := embedded.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return embedded
	})
}
