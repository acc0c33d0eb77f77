package ledgerredis

import (
	"testing"

	"seckill/internal/ledger/ledgertest"
	"seckill/test/server"
)

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
