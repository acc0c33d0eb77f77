package app

import (
	"log/slog"
	"testing"

	"seckill/internal/config"
)

func TestATenthOfTheHandlesIsNeverAShoppers(t *testing.T) {
	cfg := config.Default()
	cfg.Shop.MaxConns = 1000
	a := &App{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	for handles, want := range map[int]int{0: 1000, 100_000: 1000, 1112: 1000, 1000: 900, 100: 90} {
		if got := a.maxConns(handles); got != want {
			t.Errorf("with %d handles %d connections, want %d", handles, got, want)
		}
	}
}
