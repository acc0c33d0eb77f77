// Package browser drives a real Chromium for tests: tabs of one headless
// browser per test run, with the device, the language and the network that a
// story wants.
package browser

import (
	"context"
	"log"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// startWithin bounds the browser's start on a busy machine.
const startWithin = time.Minute

// running is the browser of this test run, nil where there is none.
var running context.Context

// Main runs a package's tests with a browser, where the machine has one:
//
//	func TestMain(m *testing.M) { os.Exit(browser.Main(m.Run)) }
func Main(run func() int) int {
	path := find()
	if path == "" {
		return run()
	}
	profile, err := os.MkdirTemp("", "seckill-browser-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(profile)
	options := append(chromedp.DefaultExecAllocatorOptions[:], // headless, no first run, no sync, no background networking
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-popup-blocking", true),
		// There is nothing in three dimensions: this spares a process that draws for it.
		chromedp.Flag("disable-software-rasterizer", true),
		chromedp.WSURLReadTimeout(startWithin))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	defer stopAllocator()
	ctx, stop := chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(ctx); err != nil {
		log.Printf("start %s: %v", path, err)
		return 1
	}
	running = ctx
	return run()
}

// find is the path of a browser. The headless shell is the same browser without
// windows. It takes less than half of the CPU time.
func find() string {
	for _, name := range []string{"chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// need skips a test where there is no browser.
func need(t testing.TB) context.Context {
	t.Helper()
	if running == nil {
		t.Skip("MISSING: no chromium-headless-shell or chromium in PATH: the shopper's page is tested in a real browser")
	}
	return running
}
