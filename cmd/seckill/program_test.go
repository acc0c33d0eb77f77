package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/cobra"

	"seckill/internal/config"
)

var update = flag.Bool("update", false, "rewrite the golden help texts")

// result is one run of the program.
type result struct {
	code     int
	out, err string
}

type setup func(*program)

func onTerminal(answer string) setup {
	return func(p *program) { p.terminal, p.in = true, strings.NewReader(answer) }
}

func environ(variables ...string) setup {
	return func(p *program) { p.environ = variables }
}

// execute runs a command line as main does, without the process around it.
func execute(t *testing.T, args []string, setups ...setup) result {
	t.Helper()
	var out, err bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &out, err: &err, now: time.Now}
	for _, set := range setups {
		set(p)
	}
	code := p.run(t.Context(), args)
	return result{code, out.String(), err.String()}
}

func (r result) want(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		t.Errorf("exit %d, out %q, err %q; want %d, %q, %q", r.code, r.out, r.err, code, out, err)
	}
}

func TestHelp_MatchesGoldenFiles(t *testing.T) {
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		t.Run(strings.Join(append([]string{"seckill"}, path...), " "), func(t *testing.T) {
			got := execute(t, append(path[:len(path):len(path)], "--help"))
			got.want(t, exitOK, "Usage:", "")
			file := filepath.Join("testdata", "help", strings.Join(append([]string{"seckill"}, path...), "_")+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got.out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.out != string(want) {
				t.Errorf("help has changed: review it, then run go test ./cmd/seckill -update\n%s", got.out)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	visit((&program{}).root(), nil)
}

func TestUsage_WrongUsageExitsWithTwo(t *testing.T) {
	for _, line := range []string{
		"nonsense", "--nonsense", "config", "config nonsense", "config check extra", "config print --nonsense", "config print --set batch_size",
		"preheat", "preheat 0", "preheat x", "preheat 4294967296", "preheat 1 2", "preheat 1 --timeout 0", "preheat 1 --timeout soon",
		"recover", "recover -1", "takeover", "takeover -1", "delete", "delete -1", "reconcile", "reconcile one", "token", "token --user=", "token --user a --ttl 0", "token --user a extra", "export", "version extra",
	} {
		if got := execute(t, strings.Fields(line)); got.code != exitUsage || got.err == "" || got.out != "" {
			t.Errorf("seckill %s: exit %d, out %q, err %q", line, got.code, got.out, got.err)
		}
	}
}

func TestConfigCheck_ReportsEveryError(t *testing.T) {
	execute(t, []string{"config", "check"}).want(t, exitOK, "valid", "")
	got := execute(t, []string{"config", "check", "--set", "worker.bacth_size=1", "--data-dir=",
		"--set", "shop.tls_cert=/none/cert.pem", "--set", "shop.tls_key=/none/key.pem"}, environ("SECKILL_LEDGER_KIND=redis"))
	got.want(t, exitFailure, "", "worker.bacth_size: unknown key")
	got.want(t, exitFailure, "", "redis.addrs: must be set with ledger.kind redis")
	got.want(t, exitFailure, "", "auth.jwt_secret: must be set with Redis or MySQL")
	got.want(t, exitFailure, "", "data_dir: must not be empty")
	got.want(t, exitFailure, "", "shop.tls_cert: open /none/cert.pem")
	got.want(t, exitFailure, "", "shop.tls_key: open /none/key.pem")
}

func TestConfigCheck_WarnsOfSingleInstanceParts(t *testing.T) {
	const secret = "0123456789abcdef"
	execute(t, []string{"config", "check"}, environ("SECKILL_STORE_DSN=mysql:u:p@tcp(h:1)/d", "SECKILL_ADMIN_TOKEN="+secret,
		"SECKILL_AUTH_JWT_SECRET="+secret, "SECKILL_TOKEN_SECRET="+secret, "SECKILL_PAYMENT_SANDBOX_SECRET="+secret)).
		want(t, exitOK, "warning: ledger.kind memory with a MySQL store serves one instance", "")
}

func TestConfigPrint_MasksSecrets(t *testing.T) {
	got := execute(t, []string{"config", "print", "--set", "worker.batch_size=7"}, environ("SECKILL_ADMIN_TOKEN=correct-horse-battery"))
	got.want(t, exitOK, "batch_size: 7", "")
	got.want(t, exitOK, "********", "")
	if strings.Contains(got.out, "correct-horse") {
		t.Error("the token shows")
	}
}

func TestSet_RefusesSecrets(t *testing.T) {
	for key, env := range map[string]string{"admin.token": "SECKILL_ADMIN_TOKEN", "store.dsn": "SECKILL_STORE_DSN", "redis.password": "SECKILL_REDIS_PASSWORD"} {
		got := execute(t, []string{"config", "check", "--set", key + "=correct-horse-battery"})
		got.want(t, exitFailure, "", "--set: "+key+": must not be set by a flag")
		got.want(t, exitFailure, "", "set "+env+" in the environment")
		if strings.Contains(got.out+got.err, "correct-horse") {
			t.Errorf("%s: the secret shows", key)
		}
	}
}

func TestFlags_OverrideEnvironmentAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("data_dir: /file\nlog: {level: warn}\norder: {expire_after: 1m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := execute(t, []string{"config", "print", "-c", file, "--data-dir", "/flag"}, environ("SECKILL_DATA_DIR=/env", "SECKILL_LOG_LEVEL=error"))
	for _, want := range []string{"data_dir: /flag", "level: error", "expire_after: 1m"} {
		got.want(t, exitOK, want, "")
	}
}

func TestToken_PrintsSignedJWT(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	dir := t.TempDir()
	execute(t, []string{"token", "--user", "alice", "--data-dir", dir}).want(t, exitFailure, "", "no secret to sign with")

	kept := config.Default()
	kept.DataDir = dir
	if err := kept.FillSecrets(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  []byte
		with setup
	}{
		"configured": {[]byte(secret), environ("SECKILL_AUTH_JWT_SECRET=" + secret)},
		"generated":  {kept.Auth.JWTSecret.Bytes(), environ()},
	} {
		got := execute(t, []string{"token", "--user", "爱丽丝", "--ttl", "90m", "--data-dir", dir}, c.with)
		got.want(t, exitOK, ".", "")
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(strings.TrimSpace(got.out), &claims, func(*jwt.Token) (any, error) { return c.key, nil },
			jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired())
		if err != nil || claims.Subject != "爱丽丝" || time.Until(claims.ExpiresAt.Time).Round(time.Minute) != 90*time.Minute {
			t.Errorf("%s: claims %+v, err %v", name, claims, err)
		}
	}
}

func TestExport_WritesPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "public")
	execute(t, []string{"export", dir}).want(t, exitOK, dir, "")
	if page, err := os.ReadFile(filepath.Join(dir, "index.html")); err != nil || !bytes.Contains(page, []byte("<html")) {
		t.Errorf("index.html: %v", err)
	}
	execute(t, []string{"export", dir}).want(t, exitFailure, "", "not empty")
	execute(t, []string{"export", filepath.Join(dir, "index.html")}).want(t, exitFailure, "", "export")
}

// TestExport_StaysInItsDirectory: whoever may write there plants links to files
// and directories elsewhere.
func TestExport_StaysInItsDirectory(t *testing.T) {
	outside := t.TempDir()
	treasure := filepath.Join(outside, "treasure")
	plant := func(dir, target, name string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(treasure, []byte("gold"), 0o600), os.Symlink(target, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"index.html.new": treasure, "index.html": treasure, "_headers.new": filepath.Join(outside, "new"), "art": outside} {
		dir := t.TempDir()
		plant(dir, target, name)
		got := execute(t, []string{"export", dir, "--yes"})
		if page, err := os.Lstat(filepath.Join(dir, "index.html")); got.code == exitOK && (err != nil || !page.Mode().IsRegular()) {
			t.Errorf("%s: index.html is %v (%v)", name, page, err)
		}
		if wantFails := name == "art"; (got.code != exitOK) != wantFails {
			t.Errorf("%s: exit %d", name, got.code)
		}
		text, err := os.ReadFile(treasure)
		entries, _ := os.ReadDir(outside)
		if string(text) != "gold" || len(entries) != 1 {
			t.Errorf("%s: outside there is %q and %d files (%v)", name, text, len(entries), err)
		}
	}
}

// TestExport_PageHasAPIAddress, and its headers let it reach that and no more.
func TestExport_PageHasAPIAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "public")
	args := []string{"export", dir, "--api", "https://api.example/x/", "--set", "page.image_hosts=img.example"}
	execute(t, args).want(t, exitOK, filepath.Join(dir, "_headers"), "")
	execute(t, append(args, "--yes")).want(t, exitOK, "", "")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if index := read("index.html"); !strings.Contains(index, `<meta name="seckill-api" content="https://api.example/x">`) {
		t.Errorf("the index does not name the API:\n%s", index)
	}
	headers := read("_headers")
	for _, want := range []string{
		"connect-src 'self' https://api.example;", "img-src 'self' data: https://api.example img.example;", "frame-ancestors 'none'\n  Cache-Control: no-cache\n",
		"/*\n  X-Content-Type-Options: nosniff\n", ".js\n  Cache-Control: public, max-age=31536000, immutable\n",
	} {
		if !strings.Contains(headers, want) {
			t.Errorf("_headers has no %q:\n%s", want, headers)
		}
	}
	// Every file has its word about caches.
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err == nil && !entry.IsDir() && name != "index.html" && name != "_headers" &&
			!strings.Contains(headers, "/"+name+"\n  Cache-Control: ") {
			t.Errorf("_headers says nothing of %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, api := range []string{"api.example", "ftp://x", "https://", "https://x/?a=1", "https://u:p@x", "https://h,x;y", "https://h;script-src", "https://h x", "https://h/x;y", "https://h:", "https://h:port", "https://h/#a", "https://*.h", "https://h\"", "https://[::1", " https://h"} {
		execute(t, []string{"export", filepath.Join(t.TempDir(), "x"), "--api", api}).want(t, exitUsage, "", "--api")
	}
}

func TestVersion_AndCompletionArePrinted(t *testing.T) {
	execute(t, []string{"version"}).want(t, exitOK, "seckill ", "")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		execute(t, []string{"completion", shell}).want(t, exitOK, "seckill", "")
	}
}

func TestConfirm_EndsOnInterrupt(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &program{in: reader, err: &bytes.Buffer{}, terminal: true}
	if err := p.confirm(ctx, false, "Sure?"); err != context.Canceled {
		t.Errorf("err %v", err)
	}
}
