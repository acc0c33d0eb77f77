package browser_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
	"seckill/test/login"
)

// The stories of this package are told by the real binary and a real browser.
func TestMain(m *testing.M) {
	os.Exit(browser.Main(func() int { return engine.Main(m) }))
}

const (
	isLit  = `document.querySelector('#buy')?.getAttribute('aria-disabled') === 'false'`
	isDark = `document.querySelector('#buy')?.getAttribute('aria-disabled') === 'true'`
)

// shopper is a person with a device in front of a shop.
type shopper struct {
	*browser.Tab
	t    *testing.T
	shop *engine.Engine
}

// arrive opens the page for a shopper whom the shop has signed in, for a day.
func arrive(t *testing.T, shop *engine.Engine, name string, o browser.Options) *shopper {
	t.Helper()
	return arriveAt(t, shop, shop.ShopURL, name, o)
}

// arriveAt is arrive at a page that is served elsewhere.
func arriveAt(t *testing.T, shop *engine.Engine, page, name string, o browser.Options) *shopper {
	t.Helper()
	s := &shopper{Tab: browser.Open(t, o), t: t, shop: shop}
	s.signIn(page, name, time.Now().Add(24*time.Hour))
	return s
}

// arriveUntil is arrive with a login that ends then.
func arriveUntil(t *testing.T, shop *engine.Engine, name string, end time.Time, o browser.Options) *shopper {
	t.Helper()
	s := &shopper{Tab: browser.Open(t, o), t: t, shop: shop}
	s.signIn(shop.ShopURL, name, end)
	return s
}

// signIn comes from the shop with a token, and says yes to it.
func (s *shopper) signIn(page, name string, end time.Time) {
	s.t.Helper()
	s.Open(page + "/#token=" + bearer(s.t, name, end))
	s.Click("#answer-yes")
	s.Until(`location.hash === '' && localStorage.seckill_token`)
}

func bearer(t *testing.T, name string, end time.Time) string {
	t.Helper()
	token, err := login.Token([]byte(engine.JWTSecret), name, end)
	if err != nil {
		t.Fatalf("sign %s in: %v", name, err)
	}
	return token
}

// visit goes to a product.
func (s *shopper) visit(product uint32) {
	s.t.Helper()
	s.route(fmt.Sprintf("/products/%d", product))
	s.Until(`document.querySelector('#buy') !== null`)
}

// route goes to a place of the page as a link does, without loading it anew.
func (s *shopper) route(place string) {
	s.t.Helper()
	s.Do(fmt.Sprintf(`location.hash = %q`, "#"+place))
}

// buy presses, and waits until the units are this shopper's.
func (s *shopper) buy() {
	s.t.Helper()
	s.Until(isLit)
	s.Click("#buy")
	s.UntilText("#order h2", "It’s yours!")
}

// order is the number of the order that the tab shows.
func (s *shopper) order() string {
	s.t.Helper()
	return browser.Eval[string](s.Tab, `document.querySelector('.facts code').textContent`)
}

// open starts a shop with settings and one product.
func open(t *testing.T, p engine.Product, settings map[string]string) *engine.Engine {
	t.Helper()
	shop := engine.Start(t, engine.Options{Settings: settings})
	offer(t, shop, p)
	return shop
}

// offer puts a product on sale; its window, if it has none, is now.
func offer(t *testing.T, shop *engine.Engine, p engine.Product) {
	t.Helper()
	if p.PriceCents == 0 {
		p.PriceCents = 699900
	}
	if _, err := shop.Operator().OpenSale(context.Background(), p); err != nil {
		t.Fatalf("open the sale: %v", err)
	}
}

// phone is what most stories sell.
func phone(stock int64) engine.Product {
	return engine.Product{ID: 1, Name: "Aurora X1 phone", ImageURL: "/art/phone.svg", Stock: stock}
}
