package loadtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill"

	"seckill/internal/api"
	"seckill/internal/loadtest"

	"seckill/test/engine"
)

func TestMain(m *testing.M) { os.Exit(engine.Main(m)) }

// command runs the real binary as a client of the engine, with the engine's secrets
// in its environment.
func command(t *testing.T, e *engine.Engine, args ...string) (cmd *exec.Cmd, out, progress *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, engine.Binary(t), append([]string{"loadtest", "--shop", e.ShopURL, "--admin", e.AdminURL, "--json"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(),
		"SECKILL_AUTH_JWT_SECRET="+engine.JWTSecret, "SECKILL_ADMIN_TOKEN="+engine.AdminToken, "SECKILL_PAYMENT_SANDBOX_SECRET="+engine.SandboxSecret)
	out, progress = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, progress
	return cmd, out, progress
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func readReport(t *testing.T, out *bytes.Buffer) loadtest.Report {
	t.Helper()
	var report loadtest.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("read the report: %v\n%s", err, out)
	}
	return report
}

func TestRun_EveryPromiseHolds(t *testing.T) {
	e := engine.Start(t, engine.Options{})
	cmd, out, progress := command(t, e, "--buyers", "500", "--units", "50", "--starts-in", "300ms", "--connections", "64", "--cancel", "0.4", "--repeat", "0.6")
	if code := exitCode(t, cmd.Run()); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out, progress)
	}
	report := readReport(t, out)
	if report.Won != 50 || report.Refused != 450 || report.Verdict != loadtest.Holds || report.Paid == 0 || report.Cancelled == 0 || report.Repeated == 0 {
		t.Errorf("report %+v", report)
	}
	if report.Accepted.Count != 50+report.Repeated || report.TurnedAway.Count != 450 || report.Accepted.P50 <= 0 || report.Accepted.P50 > report.Accepted.Max {
		t.Errorf("latencies %+v, %+v", report.Accepted, report.TurnedAway)
	}
	if _, err := e.Operator().Product(t.Context(), report.ProductID); engine.CodeOf(err) != seckill.CodeNotFound || !report.Deleted {
		t.Errorf("the product of the test is left: %v, %+v", err, report)
	}
}

func TestRun_KeepsItsProductAsAsked(t *testing.T) {
	e := engine.Start(t, engine.Options{})
	opt := options(e, "keep")
	opt.Keep = true
	for range 2 { // the second finds an id too
		report, err := loadtest.Run(t.Context(), newOperator(t, e), opt)
		if err != nil {
			t.Fatal(err)
		}
		if report.Verdict != loadtest.Holds || report.Deleted || report.Kept == "" {
			t.Errorf("report %+v", report)
		}
		if report.ProductID < 4_000_000_000 {
			t.Errorf("the test took product %d from the ids of the shop", report.ProductID)
		}
		made, err := e.Operator().Product(t.Context(), report.ProductID)
		if err != nil || !made.Test || made.State != "ended" {
			t.Errorf("the product of the test is left as %+v (%v)", made, err)
		}
		if _, err := e.Operator().Delete(t.Context(), report.ProductID); err != nil { // its id must not be used again
			t.Error(err)
		}
		opt.Run += "-again"
	}
}

func TestRun_InterruptLeavesPartialReport(t *testing.T) {
	e := engine.Start(t, engine.Options{})
	cmd, out, _ := command(t, e, "--buyers", "10000", "--units", "10", "--rate", "100", "--starts-in", "0s", "--connections", "8")
	cmd.Stderr = nil
	lines, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	for buffer := make([]byte, 4096); !strings.Contains(seen.String(), "sent "); {
		n, err := lines.Read(buffer)
		seen.Write(buffer[:n])
		if err != nil {
			t.Fatalf("no progress: %v\n%s", err, seen.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 2 {
		t.Errorf("exit %d", code)
	}
	report := readReport(t, out)
	if report.Deleted || report.Partial == "" || report.Verdict != loadtest.Unknown || report.Won == 0 || report.NeverAsked == 0 {
		t.Errorf("report %+v", report)
	}
}

func TestRun_ExitsWith2IfItCannotBegin(t *testing.T) {
	e := engine.New(t, engine.Options{}) // not started
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"nobody there":    {nil, "server's clock"},
		"another machine": {[]string{"--shop", "http://192.0.2.1:8080"}, "--yes-load 192.0.2.1"},
		"no buyers":       {[]string{"--buyers", "0"}, "buyers must be"},
		"a bad time":      {[]string{"--at", "noon"}, "RFC 3339"},
	} {
		cmd, out, progress := command(t, e, c.args...)
		if code := exitCode(t, cmd.Run()); code != 2 || !strings.Contains(progress.String(), c.says) || out.Len() > 0 {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, progress)
		}
	}
}

// operator is the engine's operator API, with stats that a test may falsify.
type operator struct {
	*api.Client
	bend  func(*api.Stats)
	money func([]api.Payment) []api.Payment
}

func (o *operator) Stats(ctx context.Context, id uint32) (api.Stats, error) {
	figures, err := o.Client.Stats(ctx, id)
	if o.bend != nil {
		o.bend(&figures)
	}
	return figures, err
}

func (o *operator) Payments(ctx context.Context, orderNo string) ([]api.Payment, error) {
	payments, err := o.Client.Payments(ctx, orderNo)
	if o.money != nil {
		payments = o.money(payments)
	}
	return payments, err
}

func newOperator(t *testing.T, e *engine.Engine) *operator {
	t.Helper()
	client, err := api.NewClient(api.ClientOptions{URL: e.AdminURL, Token: engine.AdminToken})
	if err != nil {
		t.Fatal(err)
	}
	return &operator{Client: client}
}

func options(e *engine.Engine, run string) loadtest.Options {
	return loadtest.Options{
		ShopURL: e.ShopURL, JWTSecret: []byte(engine.JWTSecret), SandboxSecret: []byte(engine.SandboxSecret),
		Buyers: 60, Units: 10, PerUserLimit: 2, Quantity: 2, Connections: 16, Duration: 20 * time.Second, Retries: 5,
		Pay: 0.5, Cancel: 0.3, Repeat: 0.5, Run: run, Now: time.Now, Random: rand.Float64,
	}
}

func TestRun_FindsFalseFigures(t *testing.T) {
	e := engine.Start(t, engine.Options{})
	for name, c := range map[string]struct {
		check string
		lie   func(*operator)
	}{
		"a unit less in the ledger": {"ledger balance", func(o *operator) {
			o.bend = func(s *api.Stats) { s.Ledger.Available-- }
		}},
		"a unit more in the store": {"conservation", func(o *operator) {
			o.bend = func(s *api.Stats) { s.Store.Stock++ }
		}},
		"a callback that counts twice": {"money", func(o *operator) {
			o.money = func(p []api.Payment) []api.Payment { return append(p, p...) }
		}},
	} {
		liar := newOperator(t, e)
		c.lie(liar)
		opt := options(e, "lie-"+strings.ReplaceAll(c.check, " ", "-"))
		opt.Pay, opt.Cancel = 1, 0
		report, err := loadtest.Run(t.Context(), liar, opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if report.Verdict != loadtest.Broken || report.Deleted {
			t.Errorf("%s: %s, and its orders were deleted: %t", name, report.Verdict, report.Deleted)
		}
		for _, check := range report.Checks {
			if (check.Name == c.check) != (check.Verdict == loadtest.Broken) {
				t.Errorf("%s: %s is %s: %s", name, check.Name, check.Verdict, check.Detail)
			}
		}
	}
}

func TestRun_ExistingProductKeepsItsTerms(t *testing.T) {
	e := engine.Start(t, engine.Options{})
	admin := newOperator(t, e)
	starts := time.Now().Add(-time.Second)
	if _, err := admin.CreateProduct(t.Context(), api.NewProduct{
		ID: 7, Name: "Shoe", PriceCents: 100, Stock: 7, PerUserLimit: 3, StartsAt: starts, EndsAt: starts.Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	opt := options(e, "own")
	opt.Product, opt.Quantity = 7, 3
	report, err := loadtest.Run(t.Context(), admin, opt)
	if err != nil {
		t.Fatal(err)
	}
	// Two claims of three units leave one unit.
	if report.Verdict != loadtest.Holds || report.Won != 2 || report.Units != 7 || report.Fresh {
		t.Errorf("report %+v", report)
	}
	opt.Quantity, opt.Run = 4, "too-many"
	if _, err := loadtest.Run(t.Context(), admin, opt); err == nil || !strings.Contains(err.Error(), "limit of 3") {
		t.Errorf("a quantity above the limit: %v", err)
	}
}

func TestRun_FetchesRequiredPurchaseTokens(t *testing.T) {
	for _, kind := range []string{"none", "pow"} {
		t.Run(kind, func(t *testing.T) {
			e := engine.Start(t, engine.Options{Settings: map[string]string{"token.required": "true", "challenge.kind": kind, "challenge.pow_bits": "8"}})
			opt := options(e, "tokens")
			opt.Repeat = 1 // of five winners; a smaller share may select none
			report, err := loadtest.Run(t.Context(), newOperator(t, e), opt)
			if err != nil {
				t.Fatal(err)
			}
			if report.Verdict != loadtest.Holds || report.Won != 5 || report.Repeated != 5 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestRun_SaysWhyTokensAreMissingAndWhatToDo(t *testing.T) {
	for advice, settings := range map[string]map[string]string{
		"SECKILL_CHALLENGE_KIND=pow":          {"challenge.kind": "image"},
		"SECKILL_LIMIT_OTHER_IP_PER_SECOND=0": {"limit.other_ip_per_second": "1"},
	} {
		settings["token.required"] = "true"
		e := engine.Start(t, engine.Options{Settings: settings})
		if _, err := loadtest.Run(t.Context(), newOperator(t, e), options(e, "kept")); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("%v does not say %s", err, advice)
		}
	}
}

func TestRun_RateLimitedCrowdRetriesUntilSoldOut(t *testing.T) {
	e := engine.Start(t, engine.Options{Settings: map[string]string{"limit.product_per_second": "20"}})
	opt := options(e, "limited")
	opt.Buyers, opt.Units, opt.Retries, opt.Rate = 30, 60, 10, 200
	report, err := loadtest.Run(t.Context(), newOperator(t, e), opt)
	if err != nil {
		t.Fatal(err)
	}
	if report.Verdict != loadtest.Holds || report.Won != 30 || report.Answers["rate_limited"] == 0 || report.Sent <= 30 {
		t.Errorf("report %+v", report)
	}
}

// A proxy that lost its upstream sends its own error, and another shopper buys the
// crowd's product. Neither counts as a fault of the engine.
func TestRun_ProxyErrorsAndOtherBuyersAreNoFault(t *testing.T) {
	e := engine.Start(t, engine.Options{})
	to, err := url.Parse(e.ShopURL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var purchases atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/orders") {
			proxy.ServeHTTP(w, r)
			return
		}
		n := purchases.Add(1)
		if n == 1 { // the other shopper is first
			var product uint32
			if _, err := fmt.Sscanf(r.URL.Path, "/api/v1/products/%d/orders", &product); err != nil {
				t.Error(err)
			}
			if _, err := e.Buyer("stranger").Buy(r.Context(), product, engine.Purchase{Quantity: 1}); err != nil {
				t.Error(err)
			}
		}
		if n%5 == 0 {
			proxy.ServeHTTP(httptest.NewRecorder(), r) // done, and the answer is lost
			http.Error(w, "<h1>502 Bad Gateway</h1>", http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	cmd, out, progress := command(t, e, "--shop", front.URL, "--buyers", "200", "--units", "50", "--starts-in", "300ms", "--connections", "16")
	if code := exitCode(t, cmd.Run()); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out, progress)
	}
	if report := readReport(t, out); report.Verdict != loadtest.Holds || report.Answers["unreadable"] == 0 || !strings.Contains(out.String(), "bought by others") {
		t.Errorf("report %s", out)
	}
}
