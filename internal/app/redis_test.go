package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"seckill/internal/alert"
	"seckill/internal/client/redisclient"
	"seckill/internal/ledger/ledgerredis"
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
		book:    book{settings: opened.CheckEviction},
		alerter: alert.New("", slog.New(slog.DiscardHandler), func(kind alert.Kind) { raised[kind]++ }),
	}
	rig.Must(t, p.checkSettings(t.Context()))
	redis.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	rig.Must(t, p.checkSettings(t.Context()))
	if len(raised) != 1 || raised[alert.MayEvict] != 1 {
		t.Errorf("raised %v", raised)
	}
	away := errors.New("away")
	p.book.settings = func(context.Context) error { return away }
	if err := p.checkSettings(t.Context()); !errors.Is(err, away) || len(raised) != 1 {
		t.Errorf("%v, raised %v", err, raised)
	}
}
