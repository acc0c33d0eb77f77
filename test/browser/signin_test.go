package browser_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

// A shop whose login is a cookie of its own hands its customer over by a code
// that works once, and the shopper is back where they were.
func TestShopHandsItsCustomerOver(t *testing.T) {
	shop := open(t, phone(3), map[string]string{"page.login_url": loginPage(t, "ann")})
	s := &shopper{Tab: browser.Open(t, browser.Options{}), t: t, shop: shop}
	s.Open(shop.ShopURL + "/#/products/1")
	s.UntilText("#buy", "Sign in to buy")
	s.UntilText("#sign-in", "Sign in to buy.")
	s.Click("#buy")
	s.UntilText("#buyer", "ann")
	s.Until(`location.hash === '#/products/1' && !location.href.includes('code')`)
	s.buy()
	onlyOrder(t, shop, "ann")
}

// Somebody sends a link with a login of their own, or the shop leads here from
// its own page: the page cannot tell, and asks.
func TestALinkThatSignsInIsAskedAbout(t *testing.T) {
	shop := open(t, phone(3), map[string]string{"page.login_url": "https://shop.example/login"})
	s := &shopper{Tab: browser.Open(t, browser.Options{}), t: t, shop: shop}
	link := shop.ShopURL + "/?sent#code=" + loginCode(t, "mallory") + "&state=0123456789abcdef0123456789abcdef"
	s.Open(link)
	s.UntilText("dialog", "Sign in as mallory?")
	s.Click("#answer-no")
	s.Until(`!document.querySelector('dialog') && !localStorage.seckill_token`)
	s.Open(shop.ShopURL + "/?again" + link[len(shop.ShopURL+"/?sent"):]) // the code is not used up yet
	s.UntilText("dialog", "Sign in as mallory?")
	s.Click("#answer-yes")
	s.UntilText("#buyer", "mallory")
}

// loginPage is the login of a shop whose customer is signed in there.
func loginPage(t *testing.T, buyer string) string {
	t.Helper()
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask := r.URL.Query()
		http.Redirect(w, r, ask.Get("return")+"#code="+loginCode(t, buyer)+"&state="+ask.Get("state"), http.StatusSeeOther)
	}))
	t.Cleanup(login.Close)
	return login.URL + "/login"
}

// loginCode is signed as the shop signs its buyers' tokens.
func loginCode(t *testing.T, buyer string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"sub": buyer, "aud": "seckill-login", "jti": t.Name(), "exp": time.Now().Add(time.Minute).Unix()})
	if err != nil {
		t.Error(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(engine.JWTSecret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// A payment app that comes back in another browser shows the order there, and
// lets nobody touch it; whether it is the sandbox's or the shop's own. Who comes
// with a link that is over signs in.
func TestPaymentReturnsIntoAnotherBrowser(t *testing.T) {
	shop := open(t, phone(3), map[string]string{
		"page.login_url": loginPage(t, "alice"), "page.pay_url": "https://shop.example/pay/{order_no}?back={return}",
	})
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.buy()
	s.Until(`document.querySelector('#pay-shop') !== null`)
	cashier := browser.Eval[string](s.Tab, `new URL(document.querySelector('#pay-shop').href).searchParams.get('back')`)
	s.Click("#pay-sandbox")
	s.Until(`document.querySelector('form button') !== null`)
	back := browser.Eval[string](s.Tab, `new URLSearchParams(location.search).get('back')`)
	if cashier != back {
		t.Errorf("the cashier leads back to %s, the sandbox to %s", cashier, back)
	}

	other := &shopper{Tab: browser.Open(t, browser.Options{}), t: t, shop: shop}
	other.Open(back)
	other.UntilText("#order h2", "It’s yours!")
	other.UntilText("#only-looks", "only shows the order")
	other.Until(`!document.querySelector('#cancel') && !document.querySelector('[id^=pay-]')`)
	s.Click("form button")
	other.UntilText("#order h2", "Thank you!") // live, without a login
	other.Open(shop.ShopURL + "/?x" + `#/orders/` + other.order() + `?link=forged`)
	other.UntilText("#main", "no longer valid")
	other.Click("#login")
	other.UntilText("#buyer", "alice")
	other.UntilText("#order h2", "Thank you!")
	other.Click("#sign-out")
	other.Until(`!localStorage.seckill_token && !document.querySelector('#order')`)
}
