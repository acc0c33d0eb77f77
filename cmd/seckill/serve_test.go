package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/internal/config"
)

func TestServe_RefusesWrongRoles(t *testing.T) {
	for _, line := range []string{"serve --roles=", "serve --roles=shop,cook", "serve --roles=shop,shop", "serve now"} {
		if got := execute(t, strings.Fields(line)); got.code != exitUsage || got.err == "" {
			t.Errorf("seckill %s: exit %d, err %q", line, got.code, got.err)
		}
	}
}

func TestServe_BadConfigurationWritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	execute(t, []string{"serve", "--data-dir", dir, "--shop-listen", "nowhere"}).want(t, exitFailure, "", "shop.listen: must be HOST:PORT")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made (%v)", err)
	}
}

func TestServe_StopsWithZeroAndPrintsNoSecrets(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the interrupt comes first: it starts, finishes nothing, and stops
	var out, err bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &out, err: &err, now: time.Now}
	code := p.run(ctx, []string{"serve", "--data-dir", dir, "--shop-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"})
	if code != exitOK {
		t.Fatalf("exit %d, err %s", code, err.String())
	}
	cfg := config.Default()
	cfg.DataDir = dir
	if err := cfg.ReadSecrets(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []config.Secret{cfg.Admin.Token, cfg.Auth.JWTSecret, cfg.Token.Secret, cfg.Payment.SandboxSecret} {
		if !secret.IsSet() || strings.Contains(out.String()+err.String(), secret.Reveal()) {
			t.Error("a secret was not kept, or shows")
		}
	}
}

func TestMigrate_CanBeRepeated(t *testing.T) {
	line := []string{"migrate", "--data-dir", t.TempDir()}
	execute(t, line).want(t, exitOK, "up to date: its tables went from version 0", "")
	execute(t, line).want(t, exitOK, "already", "")
}

func TestLog_HasConfiguredFormatAndLevel(t *testing.T) {
	var log bytes.Buffer
	logger := newLogger(config.Log{Format: "json", Level: "warn"}, &log)
	logger.Info("quiet")
	logger.Warn("loud")
	if !json.Valid(log.Bytes()) || strings.Contains(log.String(), "quiet") || !strings.Contains(log.String(), "loud") {
		t.Errorf("log %q", log.String())
	}
	for format, want := range map[string]string{"json": `"took_ms":3.064009}`, "text": "took=3.064009ms"} {
		log.Reset()
		newLogger(config.Log{Format: format, Level: "info"}, &log).Info("done", "took", 3064009*time.Nanosecond)
		if !strings.Contains(log.String(), want) {
			t.Errorf("a duration in %s: %s, want %s", format, log.String(), want)
		}
	}
}
