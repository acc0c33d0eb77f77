package web_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// stepDeadline bounds each wait for the page; the machine may be busy.
const stepDeadline = 20 * time.Second

var browser context.Context

func TestMain(m *testing.M) {
	os.Exit(func() int {
		path := findChromium()
		if path == "" {
			return m.Run()
		}
		profile, err := os.MkdirTemp("", "seckill-web-")
		if err != nil {
			log.Print(err)
			return 1
		}
		defer os.RemoveAll(profile)
		options := append(chromedp.DefaultExecAllocatorOptions[:], // headless, no first run, no sync, no background networking
			chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
			chromedp.WSURLReadTimeout(time.Minute))
		allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		defer stopAllocator()
		ctx, stop := chromedp.NewContext(allocator)
		defer stop()
		if err := chromedp.Do(ctx); err != nil {
			log.Printf("start %s: %v", path, err)
			return 1
		}
		browser = ctx
		return m.Run()
	}())
}

func findChromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// tab is one page of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// tabOptions say what kind of device and shopper it is.
type tabOptions struct {
	width, height int64
	language      string
	dark          bool
	script        string // run before the page's own
}

func openTab(t *testing.T, o tabOptions) *tab {
	t.Helper()
	if browser == nil {
		t.Skip("MISSING: no chromium in PATH: the shopper's page is tested in a real browser")
	}
	ctx, stop := chromedp.NewContext(browser)
	b := &tab{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.readConsole(messages)
	}()
	t.Cleanup(func() {
		stop()
		<-read
	})
	if o.width == 0 {
		o.width, o.height = 390, 844
	}
	if o.language == "" {
		o.language = "en-US"
	}
	scheme := "light"
	if o.dark {
		scheme = "dark"
	}
	script := fmt.Sprintf("Object.defineProperty(navigator, 'language', { get: () => %q });", o.language) + o.script
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: o.width, Height: o.height, DeviceScaleFactor: 2, Mobile: o.width < 700,
	})
	b.must(err)
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.must(err)
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	b.must(err)
	return b
}

// readConsole fails the test on exceptions, console errors and violations of
// the page's policy. Refusals of the API, which the browser logs as network
// errors, are part of the play.
func (b *tab) readConsole(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return
		}
		if m.Source == "network" {
			continue
		}
		if m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning {
			b.t.Errorf("the console says: %s", m)
		}
	}
}

func (b *tab) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, actions...))
}

func (b *tab) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
}

// signIn goes through the demo login.
func (b *tab) signIn() {
	b.t.Helper()
	b.until(`document.querySelector('#demo-name') !== null`)
	b.click(".demo button")
	b.until(`document.querySelector('#sign-in').hidden`)
}

// click presses with the mouse. A page that redraws may replace the element
// between finding and pressing it: that press has not happened, and is repeated.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	err := chromedp.Do(b.ctx, chromedp.Click(selector))
	if err != nil && strings.Contains(err.Error(), "node") {
		err = chromedp.Do(b.ctx, chromedp.Click(selector))
	}
	b.must(err)
}

// until waits for an expression to become true in the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	deadline := time.NewTimer(stepDeadline)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		// An error is a page on its way to the next address.
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + '\n' + document.body.innerText`))
			b.t.Fatalf("waited for %s (last error: %v); the page shows:\n%s", expression, err, text)
		}
	}
}

func (b *tab) untilText(selector, part string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, part))
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must(err)
	return value
}

// do runs a statement in the page.
func (b *tab) do(statement string) {
	b.t.Helper()
	eval[bool](b, "("+statement+", true)")
}

// shot keeps a picture where SECKILL_WEB_SHOTS says, for a person to look at.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("SECKILL_WEB_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.must(err)
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) press(keys string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(keys))
}
