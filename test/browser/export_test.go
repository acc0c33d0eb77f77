package browser_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"

	"seckill/test/browser"
	"seckill/test/engine"
)

// The exported page, served by somebody else, sells all the same: API and
// events come across origins, and pictures by path from the API's server.
func TestExportedPageSellsFromElsewhere(t *testing.T) {
	public := filepath.Join(t.TempDir(), "public")
	cdn := httptest.NewServer(http.FileServer(http.Dir(public)))
	t.Cleanup(cdn.Close)
	shop := open(t, phone(3), map[string]string{"shop.cors_origins": cdn.URL, "page.url": cdn.URL})
	export := exec.Command(engine.Binary(t), "export", public, "--api", shop.ShopURL)
	export.Env = shop.Environ()
	if out, err := export.CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	s := arriveAt(t, shop, cdn.URL, "alice", browser.Options{})
	s.shown(".card img")
	s.visit(1)
	s.buy()
	s.Click("#pay-sandbox")
	s.Until(`document.querySelector('form button') !== null`)
	s.Click("form button")
	s.UntilText("#order h2", "Thank you!") // back at the page, not at the API
	s.Until(`location.origin === '` + cdn.URL + `'`)
}
