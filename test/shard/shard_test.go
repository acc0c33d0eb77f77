package shard_test

import (
	"context"
	"path/filepath"
	"testing"

	"seckill/internal/client/redisclient"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgermem"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/ledger/ledgertest"
	"seckill/test/server"
	"seckill/test/shard"
)

func TestShards_MemoryReference(t *testing.T) {
	shard.Run(t, func(*testing.T) ledger.Ledger { return ledgertest.NewReference() })
}

func TestShards_EmbeddedLedger(t *testing.T) {
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

func TestShards_Redis(t *testing.T) {
	addrs := []string{server.Redis(t, server.RedisOptions{}).Addr()}
	shard.Run(t, func(t *testing.T) ledger.Ledger { return openRedis(t, addrs) })
}

// The shards are spread over three masters.
func TestShards_RedisCluster(t *testing.T) {
	addrs := server.Cluster(t, server.ClusterOptions{}).Addrs()
	shard.Run(t, func(t *testing.T) ledger.Ledger { return openRedis(t, addrs) })
}

func openRedis(t *testing.T, addrs []string) ledger.Ledger {
	t.Helper()
	redis, err := ledgerredis.Open(t.Context(), ledgerredis.Options{Place: redisclient.Place{Addrs: addrs}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := redis.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return redis
}
