package app_test

import (
	"context"
	"net"
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
	if _, err := app.New(cfg, app.Options{}); err == nil || !strings.Contains(err.Error(), "open store") {
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

func TestAnAddressThatIsTakenIsNamedByItsKey(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for key, set := range map[string]func(*config.Config){
		"shop.listen":  func(c *config.Config) { c.Shop.Listen = taken.Addr().String() },
		"admin.listen": func(c *config.Config) { c.Admin.Listen = taken.Addr().String() },
	} {
		cfg := settings(t)
		set(cfg)
		if _, err := app.New(cfg, app.Options{}); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
