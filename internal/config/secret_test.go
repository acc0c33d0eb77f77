package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"seckill/internal/config"
)

const hidden = "zeal-correct-horse-battery"

func TestSecret_IsMaskedInAllOutput(t *testing.T) {
	cfg := config.Default()
	cfg.Admin.Token = config.NewSecret(hidden)
	cfg.Token.PreviousSecrets = []config.Secret{config.NewSecret(hidden)}
	cfg.Auth.JWTPreviousSecrets = []config.Secret{config.NewSecret(hidden), config.NewSecret(hidden + "2")}
	cfg.Alert.WebhookURL = "https://hooks.example/services/" + hidden
	cfg.Challenge.VerifyURL = "https://user:" + hidden + "@verify.example:8443?key=" + hidden
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		fmt.Fprintf(&out, verb, cfg.Admin.Token)
		fmt.Fprintf(&out, verb, *cfg)
		fmt.Fprintf(&out, verb, &cfg.Admin)
	}
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		logger.Info("start", "config", cfg, "token", cfg.Admin.Token, "admin", cfg.Admin, "webhook", cfg.Alert.WebhookURL)
	}
	if err := json.NewEncoder(&out).Encode(cfg); err != nil {
		t.Fatal(err)
	}
	if err := yaml.NewEncoder(&out).Encode(cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{hidden, fmt.Sprintf("%x", hidden), fmt.Sprintf("%X", hidden), hidden[:3]} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret shows as %q", form)
		}
	}
	for _, shown := range []string{"webhook_url: https://hooks.example/********", "verify_url: https://verify.example:8443/********"} {
		if !strings.Contains(out.String(), shown) {
			t.Errorf("%q is not shown", shown)
		}
	}
	if cfg.Admin.Token.Reveal() != hidden || string(cfg.Admin.Token.Bytes()) != hidden {
		t.Error("Reveal does not give the secret")
	}
}

// What was printed is no configuration to start with: alerts would go nowhere.
func TestLoad_RefusesMaskedAddress(t *testing.T) {
	_, err := config.Load(sources([]config.Setting{set("alert.webhook_url", "https://hooks.example/********")}))
	if err == nil || !strings.Contains(err.Error(), "SECKILL_ALERT_WEBHOOK_URL: is the masked text") {
		t.Errorf("loaded with %v", err)
	}
}

// The process list shows the arguments of every process to every user.
func TestLoad_SecretsInFlagsAreRefused(t *testing.T) {
	private := 0
	for _, d := range config.Describe() {
		_, err := config.Load(config.Sources{Flags: []config.Setting{set(d.Key, hidden)}})
		refused := err != nil && strings.Contains(err.Error(), "--set: "+d.Key+": must not be set by a flag")
		if refused != d.Private {
			t.Errorf("%s: private is %v, and by a flag: %v", d.Key, d.Private, err)
		}
		if d.Private {
			private++
			if !strings.Contains(err.Error(), d.Env()) || strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: the error must name %s and not the secret: %v", d.Key, d.Env(), err)
			}
		}
		if strings.HasPrefix(d.Type(), "secret") && !d.Private {
			t.Errorf("%s is a %s that a flag sets", d.Key, d.Type())
		}
	}
	if private < 12 {
		t.Errorf("%d private keys", private)
	}
}

// TestLoad_AddressesWithKeysInFlagsAreRefused: a key in an address is a secret too.
func TestLoad_AddressesWithKeysInFlagsAreRefused(t *testing.T) {
	for address, refused := range map[string]bool{
		"https://a.example/jwks": false, "https://a.example/jwks?key=" + hidden: true, "https://u:" + hidden + "@a.example/jwks": true,
	} {
		_, err := config.Load(config.Sources{Flags: []config.Setting{set("auth.jwks_url", address)}})
		got := err != nil && strings.Contains(err.Error(), "must not be set by a flag") && strings.Contains(err.Error(), "SECKILL_AUTH_JWKS_URL")
		if got != refused || err != nil && strings.Contains(err.Error(), hidden) {
			t.Errorf("%s by a flag: %v", address, err)
		}
	}
}

func TestPrint_HidesUserAndQueryOfEveryAddress(t *testing.T) {
	for _, d := range config.Describe() {
		if !strings.HasSuffix(d.Key, "url") || d.Key == "pulsar.url" {
			continue // an address of Pulsar has neither
		}
		for _, address := range []string{"https://a.example:8443/in/{order_no}?key=" + hidden, "https://u:" + hidden + "@a.example:8443/in/{order_no}"} {
			if d.Key == "auth.jwks_url" && strings.Contains(address, "@") {
				continue // refused
			}
			cfg, err := config.Load(config.Sources{Environ: []string{d.Env() + "=" + address}})
			if err != nil {
				t.Fatalf("%s: %v", d.Key, err)
			}
			var out bytes.Buffer
			if err := cfg.Print(&out); err != nil {
				t.Fatal(err)
			}
			if text := out.String(); strings.Contains(text, hidden) || !strings.Contains(text, "a.example:8443/") {
				t.Errorf("%s prints\n%s", d.Key, text)
			}
			// What was printed is no configuration to start with.
			masked := "https://a.example/in?********"
			if _, err := config.Load(config.Sources{Environ: []string{d.Env() + "=" + masked}}); err == nil || !strings.Contains(err.Error(), "is the masked text") {
				t.Errorf("%s = %s: %v", d.Key, masked, err)
			}
		}
	}
	_, err := config.Load(config.Sources{Environ: []string{"SECKILL_STORE_DSN=mysql:u:********@tcp(h:1)/d"}})
	if err == nil || !strings.Contains(err.Error(), "is the masked text") {
		t.Errorf("a masked store address: %v", err)
	}
}

func TestAdminNames_IncludeHostOfListen(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8081": "a", ":8081": "a", "[::1]:8081": "a", "0.0.0.0:8081": "a", "engine-1:8081": "a engine-1", "localhost:8081": "a localhost",
	} {
		admin := config.Admin{Listen: listen, Hosts: []string{"a"}}
		if got := strings.Join(admin.Names(), " "); got != want || len(admin.Hosts) != 1 {
			t.Errorf("%s: %q, want %q", listen, got, want)
		}
	}
}

func TestPrint_OutputLoadsAgain(t *testing.T) {
	cfg, err := config.Load(sources([]config.Setting{
		set("data_dir", "/srv/双十一: #1"), set("worker.batch_wait", "1500ms"), set("order.expire_after", "90m"), set("worker.retry_delays", "1s,1h"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := cfg.Print(&first); err != nil {
		t.Fatal(err)
	}
	again, err := config.Load(config.Sources{File: writeFile(t, first.String())})
	if err != nil {
		t.Fatalf("%v\n%s", err, first.String())
	}
	if err := again.Print(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("printed\n%s\nthen\n%s", first.String(), second.String())
	}
	for _, want := range []string{"  dsn: 'sqlite:/srv/双十一: #1/seckill.db'\n", "expire_after: 1h30m\n", "batch_wait: 1.5s\n", "retry_delays: [1s, 1h]\n"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("print lacks %q in\n%s", want, first.String())
		}
	}
}

func filled(t *testing.T, dir string) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = dir
	if err := cfg.FillSecrets(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func secrets(cfg *config.Config) [4]string {
	return [4]string{cfg.Admin.Token.Reveal(), cfg.Auth.JWTSecret.Reveal(), cfg.Token.Secret.Reveal(), cfg.Payment.SandboxSecret.Reveal()}
}

func TestFillSecrets_GeneratesOnceWithPrivateMode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := filled(t, dir)
	seen := map[string]bool{}
	for _, s := range secrets(first) {
		if len(s) != 43 || seen[s] { // 32 bytes in base64url
			t.Errorf("generated secret of %d bytes, or not unique", len(s))
		}
		seen[s] = true
	}
	if err := first.Check(); err != nil {
		t.Error(err)
	}
	if secrets(filled(t, dir)) != secrets(first) {
		t.Error("a second start has other secrets")
	}
	entries, err := os.ReadDir(filepath.Join(dir, "secrets"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, err %v, want 0600", entry.Name(), info.Mode(), err)
		}
	}
	if got, want := strings.Join(names, " "), "admin.token auth.jwt_secret payment.sandbox_secret token.secret"; got != want {
		t.Errorf("kept files %q, want %q", got, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("secrets directory: %v, %v, want 0700", info, err)
	}
}

func TestFillSecrets_KeepsConfiguredSecret(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Admin.Token = config.NewSecret(hidden)
	if err := cfg.FillSecrets(); err != nil {
		t.Fatal(err)
	}
	if cfg.Admin.Token.Reveal() != hidden {
		t.Error("the configured token was replaced")
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "secrets", "admin.token")); !os.IsNotExist(err) {
		t.Errorf("the configured token was written to disk (%v)", err)
	}
}

func TestFillSecrets_ConcurrentProcessesShareSecrets(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	got := make([][4]string, 8)
	for i := range got {
		group.Go(func() {
			cfg := config.Default()
			cfg.DataDir = dir
			if err := cfg.FillSecrets(); err != nil {
				t.Error(err)
			}
			got[i] = secrets(cfg)
		})
	}
	group.Wait()
	for _, s := range got[1:] {
		if s != got[0] {
			t.Fatal("two processes have different secrets")
		}
	}
}

func TestReadSecrets_CreatesNothing(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = filepath.Join(t.TempDir(), "none")
	if err := cfg.ReadSecrets(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cfg.DataDir); cfg.Admin.Token.IsSet() || !os.IsNotExist(err) {
		t.Errorf("something was made (%v)", err)
	}
}

func TestFillSecrets_DamagedFileIsAnError(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"short":     func(path string) error { return os.WriteFile(path, []byte("x\n"), 0o600) },
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"public":    func(path string) error { return os.Chmod(path, 0o644) },
		"directory": func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
	} {
		dir := t.TempDir()
		filled(t, dir)
		if err := spoil(filepath.Join(dir, "secrets", "auth.jwt_secret")); err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		cfg.DataDir = dir
		if err := cfg.FillSecrets(); err == nil || !strings.Contains(err.Error(), "auth.jwt_secret") {
			t.Errorf("%s: error %v does not name the secret", name, err)
		}
	}
}

func TestFillSecrets_RefusesWorldWritableDirectory(t *testing.T) {
	for mode, taken := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o703: false, 0o777 | os.ModeSticky: true} {
		for _, kept := range []bool{true, false} {
			cfg := config.Default()
			cfg.DataDir = t.TempDir()
			dir := filepath.Join(cfg.DataDir, "secrets")
			if kept {
				filled(t, cfg.DataDir)
			} else if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			err := cfg.FillSecrets()
			if (err == nil) != taken || cfg.Admin.Token.IsSet() != taken || err != nil && !strings.Contains(err.Error(), "chmod 700") {
				t.Errorf("mode %v, kept before %v: %v", mode, kept, err)
			}
		}
	}
}
