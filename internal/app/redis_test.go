package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"seckill/internal/alert"
	"seckill/internal/client/redisclient"
	"seckill/internal/config"
	"seckill/internal/ledger/ledgerredis"
	"seckill/internal/metrics"
	"seckill/test/rig"
	"seckill/test/server"
)

// A policy that would have been refused at the start is told when somebody sets
// it later.
func TestAnEvictionPolicyThatWasChangedIsAlerted(t *testing.T) {
	redis := server.Redis(t, server.RedisOptions{})
	opened, err := ledgerredis.Open(t.Context(), ledgerredis.Options{Place: redisclient.Place{Addrs: []string{redis.Addr()}}})
	rig.Must(t, err)
	defer func() { rig.Must(t, opened.Shutdown(t.Context())) }()
	raised := make(map[alert.Kind]int)
	p := &parts{
		cfg: config.Default(), log: slog.New(slog.DiscardHandler), metrics: metrics.New(""), redis: opened,
		alerter: alert.New("", slog.New(slog.DiscardHandler), func(kind alert.Kind) { raised[kind]++ }),
	}
	rig.Must(t, p.checkSettings(t.Context()))
	redis.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	rig.Must(t, p.checkSettings(t.Context()))
	if len(raised) != 1 || raised[alert.MayEvict] != 1 {
		t.Errorf("raised %v", raised)
	}
	redis.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := p.checkSettings(ctx); err == nil || len(raised) != 1 {
		t.Errorf("%v, raised %v", err, raised)
	}
}
