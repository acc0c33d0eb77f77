package browser

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// StepDeadline bounds each wait for the page; the machine may be busy.
const StepDeadline = 40 * time.Second

// lookEvery is how often Until looks.
const lookEvery = 20 * time.Millisecond

// ShotsEnv names a directory into which Shot writes pictures, for a person to
// look at; without it there are none.
const ShotsEnv = "SECKILL_WEB_SHOTS"

// Options say what kind of device and shopper it is.
type Options struct {
	Width, Height int64  // a phone of 390 × 844 without
	Language      string // English without
	Dark          bool
	Script        string // run before the page's own
}

// Tab is one page of the browser, with a profile of its own.
type Tab struct {
	t   testing.TB
	ctx context.Context
}

// Open opens an empty tab, which the test's end closes.
func Open(t testing.TB, o Options) *Tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(need(t), chromedp.WithNewBrowserContext())
	b := &Tab{t: t, ctx: ctx}
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
	b.become(o)
	return b
}

// become makes the tab the device that the options say.
func (b *Tab) become(o Options) {
	b.t.Helper()
	if o.Width == 0 {
		o.Width, o.Height = 390, 844
	}
	if o.Language == "" {
		o.Language = "en-US"
	}
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	scale := 1.0
	if os.Getenv(ShotsEnv) != "" {
		scale = 2 // for pictures: four times as much to draw
	}
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: o.Width, Height: o.Height, DeviceScaleFactor: scale, Mobile: o.Width < 700,
	})
	b.must(err)
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.must(err)
	script := fmt.Sprintf("Object.defineProperty(navigator, 'language', { get: () => %q });", o.Language) + o.Script
	_, err = chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	b.must(err)
}

// readConsole fails the test on exceptions, console errors and violations of
// the page's policy. Refusals of the API, which the browser logs as network
// errors, are part of the play.
func (b *Tab) readConsole(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
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

func (b *Tab) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// Open goes to an address.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.Navigate(url)))
}

// pressTries is how often a press that missed its element is repeated.
const pressTries = 3

// Click presses with the mouse. A page that redraws may replace or move the
// element between finding and pressing it: that press has not happened, and is
// repeated.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.Until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	watch := fmt.Sprintf(`window.pressMissed = true; document.addEventListener('click', (e) => {
		if (e.target.closest(%q)) window.pressMissed = false;
	}, true); true`, selector)
	for range pressTries {
		_, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](watch))
		b.must(err)
		err = chromedp.Do(b.ctx, chromedp.Click(selector))
		if err != nil && strings.Contains(err.Error(), "node") {
			continue
		}
		b.must(err)
		// An error, or no answer, is a page that the press has led away from.
		if missed, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`window.pressMissed === true`)); err != nil || !missed {
			return
		}
	}
}

// Press types keys.
func (b *Tab) Press(keys string) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.KeyEvent(keys)))
}

// Until waits for an expression to become true in the page.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	deadline := time.NewTimer(StepDeadline)
	defer deadline.Stop()
	look := time.NewTicker(lookEvery)
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

// UntilText waits for an element to contain a text.
func (b *Tab) UntilText(selector, part string) {
	b.t.Helper()
	b.Until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, part))
}

// Eval is the value of an expression, or of its promise.
func Eval[T any](b *Tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must(err)
	return value
}

// Do runs a statement in the page.
func (b *Tab) Do(statement string) {
	b.t.Helper()
	Eval[bool](b, "("+statement+", true)")
}

// Offline takes the tab off the network, or puts it back.
func (b *Tab) Offline(off bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: off, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	b.must(err)
	_, err = chromedp.Call(b.ctx, network.OverrideNetworkState, network.OverrideNetworkStateParams{
		Offline: off, DownloadThroughput: -1, UploadThroughput: -1,
	})
	b.must(err)
}

// Shot keeps a picture of what the tab shows, if ShotsEnv is set.
func (b *Tab) Shot(name string) {
	b.t.Helper()
	dir := os.Getenv(ShotsEnv)
	if dir == "" {
		return
	}
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.must(err)
	small, err := shrink(shot)
	b.must(err)
	b.must(os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"), small, 0o644))
}
