package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/test/browser"
)

// loginPage is the shop's own login. It redirects back at once with a code and the
// page's state.
func loginPage(t *testing.T, code string) string {
	t.Helper()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("return")+"#code="+code+"&state="+r.URL.Query().Get("state"), http.StatusSeeOther)
	}))
	t.Cleanup(shop.Close)
	return shop.URL + "/login"
}

func TestShopsLoginLeadsBackToTheSamePlace(t *testing.T) {
	s := newStub(t)
	s.demo, s.loginURL = false, loginPage(t, "good")
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#/products/1")
	b.UntilText("#sign-in", "Sign in to buy.")
	b.Shot("sign in at the shop")
	b.Click("#login")
	b.UntilText("#buyer", "王小明")
	b.Until(`location.hash === '#/products/1'`)
	b.Until(isLit)
	b.Until(`!location.href.includes('code') && !location.href.includes('state')`)
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	if asked := s.purchases(); asked[0].bearer != bearerOf("王小明") {
		t.Errorf("the bearer is %q", asked[0].bearer)
	}
}

// A shopper can sign out, by hand or by the shop's own logout page. Nothing of the
// login remains.
func TestSignOut_ForgetsTheLogin(t *testing.T) {
	for _, leave := range []struct {
		name, language, words string
		press                 func(b *tab)
	}{
		{"by the button", "en-US", "You are signed out", func(b *tab) {
			b.Do(`document.querySelector('#sign-out').focus()`)
			b.Press("\r") // without a question
		}},
		{"by the shop's logout", "zh-CN", "退出登录", func(b *tab) {
			b.Do(`location.hash = '#/signout'`)
			b.UntilText("dialog", "要退出登录吗？")
			b.Accessible("asked to sign out")
			b.Shot("asked to sign out")
			b.Press("\t")
			b.Until(`document.activeElement?.id === 'answer-yes'`)
			b.Press("\r")
		}},
	} {
		t.Run(leave.name, func(t *testing.T) {
			s := newStub(t)
			s.demo, s.loginURL = false, loginPage(t, "good")
			s.move("paid", "")
			b := openTab(t, browser.Options{Language: leave.language, Width: 320, Height: 568})
			b.Open(s.URL + "/#/orders")
			b.Click("#login")
			b.Until(`document.querySelector('.order-card') !== null`)
			b.Until(noScroll)
			b.Accessible("signed in")
			b.Shot("signed in " + leave.language)
			leave.press(b)
			b.UntilText("#signed-out", leave.words)
			b.UntilText("#announce", leave.words)
			b.Until(`document.querySelector('#login') && !document.querySelector('.order-card, #buyer, #sign-out')`)
			b.Until(`document.activeElement?.tagName === 'H1'`)
			b.Accessible("signed out")
			b.Shot("signed out " + leave.language)
			if kept := eval[string](b, `JSON.stringify(localStorage)`); strings.Contains(kept, bearerOf("王小明")) {
				t.Errorf("kept: %s", kept)
			}
			s.mu.Lock()
			s.calls["POST /api/v1/login"] = 0 // another code
			s.mu.Unlock()
			b.Click("#login") // the sign-out address is gone, so the login stays
			b.UntilText("#buyer", "王小明")
			b.Until(`!document.querySelector('#signed-out')`)
		})
	}
}

// Any site can link to the sign-out address, so the page asks first.
func TestSignOutLink_AsksFirst(t *testing.T) {
	s := newStub(t)
	s.demo, s.loginURL = false, loginPage(t, "good")
	other := httptest.NewServer(http.RedirectHandler(s.URL+"/#/signout", http.StatusSeeOther))
	t.Cleanup(other.Close)
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#/orders")
	b.Click("#login")
	b.UntilText("#buyer", "王小明")
	for _, decline := range []func(){
		func() { b.Click("#answer-no") },
		func() { b.Press("\x1b") },
		func() { b.Press("\r") },                      // the safe answer has the focus
		func() { b.Do(`location.hash = '#/orders'`) }, // navigates away
	} {
		b.Open(other.URL)
		b.UntilText("dialog", "Sign out?")
		b.Until(`location.hash === '#/' && document.activeElement?.id === 'answer-no'`)
		decline()
		b.Until(`!document.querySelector('dialog')`)
		b.UntilText("#buyer", "王小明")
		b.Until(`localStorage.seckill_token?.length > 0`)
	}
	b.Open(other.URL)
	b.Click("#answer-yes")
	b.UntilText("#signed-out", "You are signed out")
	b.Until(`!localStorage.seckill_token`)
	b.Open(other.URL) // without a login there is no question
	b.UntilText("#signed-out", "You are signed out")
	b.Until(`!document.querySelector('dialog')`)
}

// Each place of the page says why to sign in, unless signing in would not help.
// No place is blank.
func TestSignIn_EachPlaceSaysWhy(t *testing.T) {
	s := newStub(t)
	s.demo, s.loginURL = false, loginPage(t, "good")
	soon, gone, over := product(2, "Earbuds", time.Hour), product(3, "Socks", -time.Minute), product(4, "Tea", -time.Minute)
	soon["status"], gone["status"], over["status"] = "upcoming", "sold_out", "ended"
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute), soon, gone, over}
	b := openTab(t, browser.Options{})
	b.Open(s.URL)
	for _, at := range []struct{ place, asked, shown string }{
		{"", "Sign in to buy and to see your orders.", "Phone 17 Pro"},
		{"products/1", "Sign in to buy.", "Phone 17 Pro"},
		{"products/2", "Sign in now, so that you are ready when the sale starts.", "Earbuds"},
		{"products/3", "Sign in now, so that you are ready if a unit comes back.", "Socks"},
		{"products/4", "", "Tea"},
		{"products/5", "", "This is not on sale."},
		{"orders", "Sign in to see your orders.", "Your orders appear here when you are signed in."},
		{"orders/" + orderNo, "Sign in to see this order.", "Only its buyer can see this order."},
		{"nowhere", "", "There is nothing at this address."},
	} {
		b.Do(fmt.Sprintf(`location.hash = '#/%s'`, at.place))
		b.UntilText("#main", at.shown)
		if at.asked == "" {
			b.Until(`document.querySelector('#sign-in').hidden`)
			continue
		}
		b.Until(fmt.Sprintf(`document.querySelector('#sign-in-why')?.textContent === %q`, at.asked))
		b.Accessible("signed out at " + at.place)
	}
}

func TestSignIn_RefusedCodeIsShown(t *testing.T) {
	s := newStub(t)
	s.demo, s.loginURL = false, loginPage(t, "used")
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#code=used")
	b.UntilText("#sign-in", "Signing in did not work")
	b.Until(`!location.href.includes('code')`)
	b.Open(s.URL + "/?again#/orders")
	b.UntilText("#sign-in", "Sign in to see your orders.")
	b.Click("#login")
	b.UntilText("#sign-in", "Signing in did not work")
	b.Until(`location.hash === '#/orders'`)
}

// A link with a login that this page did not request must not change the user
// silently.
func TestSignInLink_UnrequestedLoginAsksFirst(t *testing.T) {
	s := newStub(t)
	s.demo, s.code, s.loginURL = false, bearerOf("王小明"), loginPage(t, "good")
	b := openTab(t, browser.Options{})
	for i, link := range []string{"#code=" + s.code, "#code=" + s.code + "&state=guessed", "#token=" + bearerOf("王小明"), "#/orders?token=" + bearerOf("王小明") + "&state="} {
		b.Open(fmt.Sprintf("%s/?link=%d%s", s.URL, i, link))
		b.UntilText("dialog", "Sign in as 王小明?")
		b.Until(`!location.href.includes('token') && !location.href.includes('code') && !location.href.includes('state')`)
		b.Click("#answer-no")
		b.Until(`!document.querySelector('dialog') && !localStorage.seckill_token`)
	}
	if asked := s.count("POST /api/v1/login"); asked != 0 {
		t.Errorf("%d codes were exchanged for somebody who said no", asked)
	}
	b.Open(s.URL + "/?link=wanted#code=" + s.code)
	b.UntilText("dialog", "Sign in as 王小明?")
	b.Shot("link of somebody else")
	b.Click("#answer-yes")
	b.UntilText("#buyer", "王小明")
	// The same if a user is signed in already.
	b.Open(s.URL + "/?link=other#token=" + bearerOf("eve"))
	b.UntilText("dialog", "Sign in as eve?")
	b.Press("\x1b")
	b.Until(`!document.querySelector('dialog')`)
	b.UntilText("#buyer", "王小明")
}

func TestLogin_WarnsBeforeItExpires(t *testing.T) {
	s := newStub(t)
	s.demo, s.loginURL = false, loginPage(t, "good")
	p := product(1, "Phone 17 Pro", time.Hour)
	p["status"] = "upcoming"
	s.products = []map[string]any{p}
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#token=" + bearerUntil("王小明", time.Now().Add(40*time.Minute)))
	b.Click("#answer-yes")
	b.Until(`location.hash === ''`)
	b.Open(s.URL + "/?sale#/products/1")
	b.UntilText("#login-ends", "too early for this sale")
	b.Shot("login ends")
	b.Click("#login-again")
	b.Until(`localStorage.seckill_token?.length > 0 && document.querySelector('#login-ends')?.hidden`)
	b.Until(`location.hash === '#/products/1'`)
}

func TestLogin_ExpiredLoginIsNotSent(t *testing.T) {
	s := newStub(t)
	s.demo = false
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	b := openTab(t, browser.Options{Script: fmt.Sprintf(`localStorage.setItem('seckill_token', %q);`, bearerUntil("王小明", time.Now().Add(-time.Second)))})
	b.Open(s.URL + "/#/products/1")
	b.UntilText("#buy", "Sign in to buy")
}

func TestOrderLink_IsReadOnly(t *testing.T) {
	s := newStub(t)
	s.demo, s.loginURL = false, loginPage(t, "good")
	s.move("pending", "")
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#/orders/" + orderNo + "?link=look")
	b.UntilText("#order h2", "It’s yours!")
	b.UntilText("#only-looks", "only shows the order")
	b.Until(`!document.querySelector('#pay-sandbox') && !document.querySelector('#cancel') && document.querySelector('#sign-in').hidden`)
	b.Shot("order link")
	s.move("paid", "")
	b.UntilText("#order h2", "Thank you!")
	b.Open(s.URL + "/?old#/orders/" + orderNo + "?link=old")
	b.UntilText("#main", "no longer valid")
	b.Click("#login") // after the login the order is shown
	b.UntilText("#order h2", "Thank you!")
	b.UntilText("#buyer", "王小明")
}

func TestOrderLink_WorksWithAnotherLogin(t *testing.T) {
	s := newStub(t)
	s.stranger = true
	s.move("pending", "")
	b := openTab(t, browser.Options{Script: fmt.Sprintf(`localStorage.setItem('seckill_token', %q);`, bearerOf("somebody else"))})
	b.Open(s.URL + "/#/orders/" + orderNo + "?link=look")
	b.UntilText("#only-looks", "only shows the order")
	b.Open(s.URL + "/?old#/orders/" + orderNo + "?link=old")
	b.UntilText("#main", "belongs to somebody else")
}
