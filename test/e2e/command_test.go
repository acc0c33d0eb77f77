package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"seckill/test/engine"
)

// outcome is one run of the binary.
type outcome struct {
	code     int
	out, err string
}

// run runs the binary with a command line. Its only settings are those of env.
func run(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), engine.Binary(t), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	cmd.Dir = t.TempDir()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %v: %v", args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (o outcome) want(t *testing.T, what string, code int, out, err string) {
	t.Helper()
	if o.code != code || !strings.Contains(o.out, out) || !strings.Contains(o.err, err) {
		t.Errorf("%s: exit %d, out %q, err %q; want %d, %q, %q", what, o.code, o.out, o.err, code, out, err)
	}
}

func TestCommand_EachHasHelp(t *testing.T) {
	t.Parallel()
	root := run(t, nil, "--help")
	root.want(t, "seckill --help", 0, "Usage:", "")
	commands := regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`).FindAllStringSubmatch(root.out, -1)
	lines := [][]string{{"config", "check"}, {"config", "print"}, {"completion", "bash"}}
	for _, match := range commands {
		lines = append(lines, []string{match[1]})
	}
	if len(lines) < 13 { // ten of Seckill, help and completion, and three subcommands
		t.Errorf("commands %v", lines)
	}
	for _, line := range lines {
		run(t, nil, append(line, "--help")...).want(t, strings.Join(line, " "), 0, "Usage:", "")
	}
	run(t, nil, "sevre").want(t, "a typing mistake", 2, "", "unknown command")
	run(t, nil, "serve", "--nonsense").want(t, "an unknown flag", 2, "", "unknown flag")
}

func TestCommand_CompletionIsAShellScript(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := run(t, nil, "completion", shell)
		got.want(t, shell, 0, "seckill", "")
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // its syntax cannot be checked here
		}
		check := exec.CommandContext(t.Context(), path, "-n")
		check.Stdin = strings.NewReader(got.out)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v %s", shell, err, out)
		}
	}
}

func TestConfig_CheckListsAllErrorsAndPrintMasksSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(file, []byte("worker: {batch_size: 7}\nlog: {level: warn}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "config", "check").want(t, "defaults", 0, "valid", "")
	run(t, nil, "config", "check", "--config", file).want(t, "a good file", 0, "valid", "")
	const secret = "SECKILL_AUTH_JWT_SECRET=" + engine.JWTSecret
	got := run(t, []string{secret, "SECKILL_ADMIN_TOKEN=" + engine.AdminToken, "SECKILL_LOG_LEVEL=error"}, "config", "print", "--config", file, "--set", "order.expire_after=15m")
	for _, want := range []string{"batch_size: 7", "level: error", "expire_after: 15m", "****"} {
		got.want(t, "config print", 0, want, "")
	}
	if all := got.out + got.err; strings.Contains(all, engine.JWTSecret) || strings.Contains(all, engine.AdminToken) {
		t.Errorf("secrets are printed: %s", all)
	}
	if err := os.WriteFile(file, []byte("worker: {bacth_size: 7}\norder: {expire_after: soon}\nauth: {jwt_secret: short-one}\nshop: {listen: nowhere}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"config", "check"}, {"config", "print"}, {"serve"}} {
		got := run(t, nil, append(command, "--config", file)...)
		for _, want := range []string{"worker.bacth_size", "order.expire_after", "auth.jwt_secret", "shop.listen"} {
			got.want(t, strings.Join(command, " "), 1, "", want)
		}
		if strings.Contains(got.err, "short-one") {
			t.Errorf("a secret that is not good enough is still one: %s", got.err)
		}
	}
	run(t, nil, "config", "check", "--config", file+".none").want(t, "no file", 1, "", "seckill.yaml.none")
}

func TestCommand_SaleCommandsCallTheRunningEngine(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	openSale(t, e, engine.Product{ID: 1, Stock: 5})
	env := []string{"SECKILL_AUTH_JWT_SECRET=" + engine.JWTSecret, "SECKILL_ADMIN_TOKEN=" + engine.AdminToken, "SECKILL_DATA_DIR=" + t.TempDir()}
	token := run(t, env, "token", "--user", "ann")
	token.want(t, "token", 0, ".", "")
	got := send(t, e, http.MethodPost, e.ShopURL+"/api/v1/products/1/orders", bearer(strings.TrimSpace(token.out)), "")
	if got.Status != http.StatusAccepted {
		t.Fatalf("buy with the command's token: %d %s", got.Status, got.Text)
	}
	admin := []string{"--admin", e.AdminURL}
	run(t, env, append(admin, "preheat", "1")...).want(t, "preheat", 0, "", "")
	run(t, env, append([]string{"reconcile", "1", "--json"}, admin...)...).want(t, "reconcile", 0, `"balanced": true`, "")
	run(t, env, append([]string{"recover", "1", "--yes", "--reason", "a try"}, admin...)...).want(t, "recover", 0, "", "")
	run(t, env, append([]string{"reconcile", "1"}, admin...)...).want(t, "reconcile after recover", 0, "", "")
	run(t, env, append([]string{"preheat", "9"}, admin...)...).want(t, "preheat nothing", 1, "", "not_found")
	run(t, env, append([]string{"reconcile", "9"}, admin...)...).want(t, "reconcile nothing", 2, "", "not_found")
	wrong := []string{"SECKILL_ADMIN_TOKEN=not-the-token-of-this-engine-at-all"}
	run(t, wrong, append([]string{"preheat", "1"}, admin...)...).want(t, "preheat by a stranger", 1, "", "unauthenticated")
	run(t, env, "reconcile", "1", "--admin", "http://127.0.0.1:1").want(t, "no engine there", 2, "", "connect")
	balanced(t, e, 1)

	public := t.TempDir()
	run(t, nil, "export", public).want(t, "export", 0, "", "")
	exported, err := os.ReadFile(filepath.Join(public, "index.html"))
	page := regexp.MustCompile(`\n +<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(string(exported), "")
	if served := sendBy(t, http.DefaultClient, http.MethodGet, e.ShopURL+"/", nil, ""); err != nil || served.Text != page {
		t.Errorf("the exported page is not the served one (%v)", err)
	}
}

// output collects what a process writes while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// bareEngine is an engine started without configuration, as a new user starts it.
type bareEngine struct {
	t           *testing.T
	cmd         *exec.Cmd
	out         output
	shop, admin string
}

var servesAt = regexp.MustCompile(`msg="?(shop|operator address) serves"? url=(http://127\.0\.0\.1:\d+)`)

// serve runs the binary's serve without configuration, on free ports.
func serve(t *testing.T, dataDir string, args ...string) *bareEngine {
	t.Helper()
	args = append([]string{"serve", "--data-dir", dataDir, "--set", "shop.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"}, args...)
	a := &bareEngine{t: t, cmd: exec.CommandContext(t.Context(), engine.Binary(t), args...)}
	a.cmd.Env = []string{"HOME=" + t.TempDir()}
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it serves", func() bool {
		found := servesAt.FindAllStringSubmatch(a.out.String(), -1)
		if len(found) == 2 {
			a.shop, a.admin = found[0][2], found[1][2]
		}
		return len(found) == 2
	})
	return a
}

// stop ends the engine with SIGTERM, as an operator does.
func (a *bareEngine) stop() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		a.t.Errorf("it stopped with %v: %s", err, a.out.String())
	}
}

func TestServe_WithoutConfigurationCreatesSecretsAndHidesThem(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	a := serve(t, dir)
	kept := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "secrets"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		text, err := os.ReadFile(path)
		kept[entry.Name()] = strings.TrimSpace(string(text))
		return err
	})
	if err != nil || len(kept) != 4 {
		t.Errorf("%d secrets (%v)", len(kept), err)
	}
	if got := sendBy(t, http.DefaultClient, http.MethodGet, a.admin+"/admin/v1/products", bearer(kept["admin.token"]), ""); got.Status != http.StatusOK {
		t.Errorf("the kept token does not open: %d %s", got.Status, got.Text)
	}
	a.stop()
	for name, secret := range kept {
		if len(secret) < 32 || strings.Contains(a.out.String(), secret) {
			t.Errorf("%s has %d bytes, or is printed", name, len(secret))
		}
	}
}

func TestDemo_HasASaleAndALogin(t *testing.T) {
	t.Parallel()
	a := serve(t, t.TempDir(), "--demo")
	get := func(path string, header http.Header) reply {
		t.Helper()
		return sendBy(t, http.DefaultClient, http.MethodGet, a.shop+path, header, "")
	}
	eventually(t, "the demo says where to click", func() bool { return strings.Contains(a.out.String(), a.shop+"/") })
	if got := get("/api/v1/page", nil); member(t, got.Text, "demo") != "true" {
		t.Errorf("demo: %d %s", got.Status, got.Text)
	}
	for _, query := range []string{"", "?user=", "?user=%00", "?user=" + strings.Repeat("x", 65)} {
		if got := get("/demo/login"+query, nil); got.Status != http.StatusBadRequest {
			t.Errorf("sign in as %q: %d %s", query, got.Status, got.Text)
		}
	}
	token := member(t, get("/demo/login?user=%E6%9D%8E%E5%A8%9C", nil).Text, "token")
	if got := get("/api/v1/orders", bearer(token)); got.Text != `{"orders":[],"partial":false}` {
		t.Errorf("the demo's buyer sees %d %s", got.Status, got.Text)
	}
	if got := get("/api/v1/products", nil); !strings.Contains(got.Text, `"status":"upcoming"`) {
		t.Errorf("the demo sells %s", got.Text)
	}
	a.stop()
}

// A test product and a deleted product must not block the ids of the next demo.
func TestDemo_ProductIDsFollowThoseOfTheShop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := func() (a *bareEngine, admin func(method, path, body string, want int) string) {
		a = serve(t, dir, "--demo")
		eventually(t, "the demo says where to click", func() bool { return strings.Contains(a.out.String(), a.shop+"/") })
		token, err := os.ReadFile(filepath.Join(dir, "secrets", "admin.token"))
		if err != nil {
			t.Fatal(err)
		}
		return a, func(method, path, body string, want int) string {
			t.Helper()
			got := sendBy(t, http.DefaultClient, method, a.admin+"/admin/v1/products"+path, bearer(strings.TrimSpace(string(token))), body)
			if got.Status != want {
				t.Fatalf("%s %s: %d %s", method, path, got.Status, got.Text)
			}
			return got.Text
		}
	}
	a, admin := demo()
	for _, id := range []string{"3", "4000000007"} {
		admin("POST", "", `{"id":`+id+`,"name":"Trial","test":true,"price_cents":1,"stock":1,"starts_at":"2030-01-01T00:00:00Z","ends_at":"2030-01-02T00:00:00Z"}`, 201)
	}
	admin("POST", "/3/end", "{}", 200)
	admin("DELETE", "/3", "", 200)
	a.stop()
	a, admin = demo()
	list := admin("GET", "", "", 200)
	for _, id := range []string{`"id":4,`, `"id":5,`} {
		if !strings.Contains(list, id) {
			t.Errorf("no %s in %s", id, list)
		}
	}
	a.stop()
}

// A short run of the load test.
func TestLoadTest_ReportsThatAllPromisesHold(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	env := []string{
		"SECKILL_AUTH_JWT_SECRET=" + engine.JWTSecret, "SECKILL_ADMIN_TOKEN=" + engine.AdminToken,
		"SECKILL_PAYMENT_SANDBOX_SECRET=" + engine.SandboxSecret, "SECKILL_DATA_DIR=" + t.TempDir(),
	}
	got := run(t, env, "loadtest", "--shop", e.ShopURL, "--admin", e.AdminURL, "--buyers", "400", "--units", "50", "--starts-in", "1s", "--json")
	got.want(t, "loadtest", 0, "{", "")
	for _, secret := range []string{engine.JWTSecret, engine.AdminToken, engine.SandboxSecret} {
		if strings.Contains(got.out+got.err, secret) {
			t.Errorf("a secret is printed: %s", got.err)
		}
	}
}
