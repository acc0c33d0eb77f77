package ledgerredis

import (
	"context"
	"testing"
	"time"

	"seckill/internal/ledger/ledgertest"
	"seckill/test/server"
)

// opened is a ledger that leaves with the test.
func opened(t testing.TB, opt Options) *Ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := Open(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Reopen kills the server: with appendfsync always, nothing that was answered
// is lost.
func TestConformanceStandalone(t *testing.T) {
	s := server.Redis(t, server.RedisOptions{AppendFsync: "always"})
	l := opened(t, Options{Addrs: []string{s.Addr()}, Prefix: "seckill:"})
	h := ledgertest.Harness{Ledger: l, Queue: l.Queue()}
	h.Reopen = func(t *testing.T) ledgertest.Harness {
		s.Kill()
		s.Start()
		return h
	}
	ledgertest.Run(t, func(t *testing.T) ledgertest.Harness { return h })
}
