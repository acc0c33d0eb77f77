package ledgerredis

import (
	"errors"
	"strings"
	"testing"

	"seckill/internal/ledger"
	"seckill/internal/redislink"
	"seckill/test/server"
)

func TestALedgerServesOneStore(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	opt := Options{Place: redislink.Place{Addrs: []string{s.Addr()}}, Prefix: "seckill:"}
	ours, again, other := opened(t, opt), opened(t, opt), opened(t, opt)
	for _, l := range []*Ledger{ours, again} {
		if err := l.Bind(t.Context(), "ours"); err != nil {
			t.Fatal(err)
		}
	}
	err := other.Bind(t.Context(), "other")
	if !errors.Is(err, ErrOtherStore) || !strings.Contains(err.Error(), "redis.prefix") || !strings.Contains(err.Error(), "DEL 'seckill:{b0}:store'") {
		t.Fatalf("another store was answered %v", err)
	}
	opt.Prefix = "else:"
	if err := opened(t, opt).Bind(t.Context(), "other"); err != nil {
		t.Errorf("under another prefix: %v", err)
	}

	// What was lost is ours again with the first product that is rebuilt.
	s.FlushAll()
	shard := ledger.Shard{Product: 1, Group: 1, Epoch: 2}
	if _, err := ours.Install(t.Context(), ledger.Allotment{Shard: shard, Available: 1, Limit: 1}, nil); err != nil {
		t.Fatal(err)
	}
	shard.Epoch++
	_, err = other.Install(t.Context(), ledger.Allotment{Shard: shard, Available: 1, Limit: 1}, nil)
	if !errors.Is(err, ErrOtherStore) || !errors.Is(err, ledger.ErrNotExecuted) {
		t.Errorf("another store installed: %v", err)
	}
}

// A server that takes no writes for now does not keep an instance from
// starting, and is asked all the same whose ledger it has.
func TestWhoseLedgerItIsCanBeReadWithoutWriting(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{})
	opt := Options{Place: redislink.Place{Addrs: []string{s.Addr()}}, Prefix: "seckill:"}
	ours, other, early := opened(t, opt), opened(t, opt), opened(t, opt)
	s.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	if err := early.Bind(t.Context(), "ours"); err != nil {
		t.Errorf("an unbound ledger: %v", err)
	}
	s.Must("CONFIG", "SET", "min-replicas-to-write", "0")
	if err := ours.Bind(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	s.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	if err := other.Bind(t.Context(), "other"); !errors.Is(err, ErrOtherStore) {
		t.Errorf("another store was answered %v", err)
	}
}
