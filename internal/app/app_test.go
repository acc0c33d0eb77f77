package app_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/internal/app"
	"seckill/internal/config"
)

func settings(t *testing.T) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Shop.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

func TestAStoreThatCannotBeOpenedIsSaid(t *testing.T) {
	cfg := settings(t)
	cfg.Store.DSN = config.DSN("sqlite:" + filepath.Join(cfg.DataDir, "no", "such", "folder", "x.db"))
	if _, err := app.New(cfg, app.Options{}); err == nil || !strings.Contains(err.Error(), "open the store") {
		t.Fatalf("got %v", err)
	}
}

func TestAnUnknownRoleIsRefused(t *testing.T) {
	if _, err := app.New(settings(t), app.Options{Roles: []string{"shop", "cook"}}); err == nil || !strings.Contains(err.Error(), "cook") {
		t.Fatalf("got %v", err)
	}
}

func TestAnInstanceServesUntilItIsStoppedAndLeavesItsDataToTheNext(t *testing.T) {
	cfg := settings(t)
	for range 2 {
		a, err := app.New(cfg, app.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		for _, url := range []string{a.ShopURL() + "/healthz", a.AdminURL() + "/readyz"} {
			resp, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s answered %s", url, resp.Status)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
