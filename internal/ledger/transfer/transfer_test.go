package transfer_test

import (
	"context"
	"path/filepath"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/ledger/ledgertest"
	"seckill/internal/ledger/transfer/transfertest"
	"seckill/test/server"
)

func TestMover_OnTheReference(t *testing.T) {
	transfertest.Run(t, func(*testing.T) ledger.Ledger { return ledgertest.NewReference() })
}

func TestMover_OnTheEmbeddedLedger(t *testing.T) {
	embedded, err := ledgermem.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), ledgermem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := embedded.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	transfertest.Run(t, func(*testing.T) ledger.Ledger { return embedded })
}

func TestMover_OnRedis(t *testing.T) {
	redis, err := ledgerredis.Open(t.Context(), ledgerredis.Options{Place: redisclient.Place{Addrs: []string{server.Redis(t, server.RedisOptions{}).Addr()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := redis.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	transfertest.Run(t, func(*testing.T) ledger.Ledger { return redis })
}
