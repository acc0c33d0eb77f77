package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/internal/config"
)

var ownSecrets = []string{"admin.token", "auth.jwt_secret", "payment.sandbox_secret", "token.secret"}

func secretsSet() []config.Setting {
	var settings []config.Setting
	for _, key := range ownSecrets {
		settings = append(settings, set(key, "0123456789abcdef"))
	}
	return settings
}

var sharing = map[string][]config.Setting{
	"redis":      {set("ledger.kind", "redis"), set("redis.addrs", "127.0.0.1:6379")},
	"mysql":      {set("store.dsn", "mysql:seckill:hunter2@tcp(127.0.0.1:3306)/seckill")},
	"both":       {set("ledger.kind", "redis"), set("redis.addrs", "a:1,b:2,c:3"), set("store.dsn", "mysql:root@unix(/run/mysqld.sock)/seckill?tls=true")},
	"all parsed": {set("store.dsn", "mysql:u:p/@ss:w@rd@tcp([::1]:3306)/db")},
}

func TestLoad_SharedServersNeedConfiguredSecrets(t *testing.T) {
	for name, settings := range sharing {
		_, err := config.Load(sources(settings))
		for _, key := range ownSecrets {
			if err == nil || !strings.Contains(err.Error(), key+": must be set") {
				t.Errorf("%s: error %v does not name %s", name, err, key)
			}
		}
		cfg, err := config.Load(sources(append(secretsSet(), settings...)))
		if err != nil {
			t.Errorf("%s with secrets: %v", name, err)
			continue
		}
		cfg.DataDir = t.TempDir()
		if err := cfg.FillSecrets(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cfg.Token.Secret = config.Secret{}
		if err := cfg.FillSecrets(); err == nil {
			t.Errorf("%s: a secret was made up", name)
		}
		if _, err := os.Stat(filepath.Join(cfg.DataDir, "secrets")); !os.IsNotExist(err) {
			t.Errorf("%s: secrets were written (%v)", name, err)
		}
	}
}

// A kind that is misspelt is one mistake, and what was meant is not guessed.
func TestLoad_UnknownLedgerIsOneError(t *testing.T) {
	_, err := config.Load(sources(append(secretsSet(), set("ledger.kind", "reddis"), set("redis.addrs", "127.0.0.1:6379"))))
	if err == nil || !strings.HasPrefix(err.Error(), "--set: ledger.kind: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	_, err = config.Load(sources(append(secretsSet(), set("redis.addrs", "127.0.0.1:6379"))))
	if err == nil || !strings.Contains(err.Error(), "ledger.kind is memory") {
		t.Errorf("addresses that nobody uses: %v", err)
	}
}

// The shop's public keys are the same for all instances; a secret beside them
// is one more way in, for who wants it.
func TestLoad_PublicKeysReplaceJWTSecret(t *testing.T) {
	const jwt, url = "auth.jwt_secret", "https://login.example/keys"
	for name, settings := range sharing {
		settings = append([]config.Setting{set("auth.jwks_url", url)}, settings...)
		for _, key := range ownSecrets {
			if key != jwt {
				settings = append(settings, set(key, "0123456789abcdef"))
			}
		}
		cfg, err := config.Load(sources(settings))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cfg.DataDir = t.TempDir()
		if err := cfg.FillSecrets(); err != nil || cfg.Auth.JWTSecret.IsSet() || len(cfg.Auth.HMACSecrets()) != 0 {
			t.Errorf("%s: %v, or a secret was made up", name, err)
		}
		cfg, err = config.Load(sources(append(settings, set(jwt, "0123456789abcdef"), set("auth.jwt_previous_secrets", "fedcba9876543210"))))
		if err != nil || len(cfg.Auth.HMACSecrets()) != 2 || string(cfg.Auth.HMACSecrets()[0]) != "0123456789abcdef" {
			t.Errorf("%s with secrets: %v", name, err)
		}
	}
	alone, err := config.Load(sources([]config.Setting{set("auth.jwks_url", url), set("data_dir", t.TempDir())}))
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.FillSecrets(); err != nil || !alone.Auth.JWTSecret.IsSet() {
		t.Errorf("embedded: %v, or no secret was made", err)
	}
}

func TestTimeouts_DefaultDependsOnLedger(t *testing.T) {
	for _, c := range []struct {
		name           string
		settings       []config.Setting
		purchase, call time.Duration
	}{
		{"embedded", nil, 2 * time.Second, 5 * time.Second},
		{"redis", sharing["redis"], 800 * time.Millisecond, 400 * time.Millisecond},
		{"redis, set", append([]config.Setting{set("purchase.timeout", "3s")}, sharing["redis"]...), 3 * time.Second, 400 * time.Millisecond},
		{"redis with replicas", append([]config.Setting{set("redis.wait_replicas", "1"), set("redis.wait_timeout", "100ms")}, sharing["redis"]...),
			800 * time.Millisecond, 500 * time.Millisecond},
	} {
		cfg, err := config.Load(sources(append(secretsSet(), c.settings...)))
		if err != nil {
			t.Fatal(err)
		}
		if cfg.PurchaseTimeout() != c.purchase || cfg.CallTimeout() != c.call {
			t.Errorf("%s: a shopper waits %s, a call %s", c.name, cfg.PurchaseTimeout(), cfg.CallTimeout())
		}
	}
}

func TestWorkers_DefaultDependsOnStore(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []config.Setting
		want     int
	}{
		{"embedded", nil, 1},
		{"embedded, set", []config.Setting{set("worker.count", "3")}, 3},
		{"mysql", sharing["mysql"], 2},
		{"mysql, held to a rate", append([]config.Setting{set("worker.rate_per_second", "100")}, sharing["mysql"]...), 1},
		{"mysql, set", append([]config.Setting{set("worker.count", "5")}, sharing["mysql"]...), 5},
		{"mysql, one writer", append([]config.Setting{set("store.max_conns", "3")}, sharing["mysql"]...), 1},
		{"mysql, all writers", append([]config.Setting{set("worker.count", "4"), set("store.max_conns", "8")}, sharing["mysql"]...), 4},
		{"mysql, more than write at once", append([]config.Setting{set("worker.count", "5"), set("store.max_conns", "9")}, sharing["mysql"]...), 0},
	} {
		cfg, err := config.Load(sources(append(secretsSet(), c.settings...)))
		if (err == nil) != (c.want > 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		if got := cfg.Workers(); got != c.want {
			t.Errorf("%s: %d workers, want %d", c.name, got, c.want)
		}
	}
}

func TestWarnings_SingleInstancePartsAndMissingAudience(t *testing.T) {
	for name, want := range map[string]int{"redis": 1, "mysql": 1, "both": 0} {
		cfg, err := config.Load(sources(append(append(secretsSet(), set("payment.sandbox_page", "false")), sharing[name]...)))
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Warnings(); len(got) != want {
			t.Errorf("%s: warnings %q", name, got)
		}
	}
	cfg := config.Default()
	if got := cfg.Warnings(); len(got) != 0 {
		t.Errorf("embedded: warnings %q", got)
	}
	cfg.Auth.JWKSURL = "https://login.example/keys"
	if got := cfg.Warnings(); len(got) != 1 {
		t.Errorf("keys of a login that may serve others: warnings %q", got)
	}
	cfg.Auth.Audience = "shop"
	if got := cfg.Warnings(); len(got) != 0 {
		t.Errorf("keys and an audience: warnings %q", got)
	}
}

func TestWarnings_SandboxPageWithSharedServers(t *testing.T) {
	for name := range sharing {
		cfg, err := config.Load(sources(append(secretsSet(), sharing[name]...)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cfg.Warnings(), "\n"); !strings.Contains(got, "payment.sandbox_page") {
			t.Errorf("%s: warnings %q", name, got)
		}
	}
}

func TestDSN_PrintsWithoutPassword(t *testing.T) {
	for dsn, want := range map[config.DSN]string{
		"":                                    "",
		"sqlite:/a/b.db":                      "sqlite:/a/b.db",
		"mysql:u:hunter2@tcp(h:1)/d?tls=true": "mysql:u:********@tcp(h:1)/d?********",
		"mysql:u:hun/ter2@hunter2@tcp(h:1)/d": "mysql:u:********@tcp(h:1)/d",
		"mysql:u@unix(/run/x.sock)/d":         "mysql:u@unix(/run/x.sock)/d",
		"mysql:u:hunter2@h/d":                 "mysql:********",
		"mysql:hunter2":                       "mysql:********",
		"postgres:u:hunter2@tcp(h:1)/d":       "postgres:********",
		"hunter2":                             "********",
	} {
		cfg := config.Default()
		cfg.Store.DSN = dsn
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb, dsn)
			fmt.Fprintf(&out, verb, *cfg)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("start", "config", cfg, "dsn", dsn)
		if err := json.NewEncoder(&out).Encode(cfg); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Print(&out); err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"hunter2", "ter2", fmt.Sprintf("%x", "hunter2")} {
			if strings.Contains(out.String(), form) {
				t.Errorf("%s shows %q", want, form)
			}
		}
		if got := dsn.String(); got != want {
			t.Errorf("printed as %q, want %q", got, want)
		}
	}
}

func TestLoad_ServerListsFromFileAndText(t *testing.T) {
	file := writeFile(t, "ledger: {kind: redis}\nredis: {addrs: ['a:1', 'b:2']}\n")
	secrets := sources(secretsSet()).Environ
	for _, from := range []config.Sources{
		{File: file, Environ: secrets},
		{Environ: append(secrets, "SECKILL_LEDGER_KIND=redis", "SECKILL_REDIS_ADDRS=a:1, b:2")},
	} {
		cfg, err := config.Load(from)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cfg.Redis.Addrs, []string{"a:1", "b:2"}) {
			t.Errorf("addresses %q", cfg.Redis.Addrs)
		}
	}
}

func TestLoad_StoreDSNNeedsScheme(t *testing.T) {
	for _, dsn := range []string{"hunter2:hunter2@tcp(h:1)/d", "postgres:u:hunter2@h/d", "hunter2"} {
		_, err := config.Load(sources([]config.Setting{set("store.dsn", dsn)}))
		if err == nil || !strings.Contains(err.Error(), "must begin with mysql: or sqlite:") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
