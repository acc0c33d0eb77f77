package web_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"seckill/test/browser"
)

// litWithin is generous for a busy machine; an idle one needs a few ms.
const litWithin = 5 * time.Second

const (
	isLit    = `document.querySelector('#buy')?.getAttribute('aria-disabled') === 'false'`
	isDark   = `document.querySelector('#buy')?.getAttribute('aria-disabled') === 'true'`
	noScroll = `document.documentElement.scrollWidth <= document.documentElement.clientWidth`
)

func openProduct(t *testing.T, s *stub, o browser.Options) *tab {
	t.Helper()
	b := openTab(t, o)
	b.Open(s.URL + "/#/products/1")
	b.signIn()
	return b
}

func TestButton_EnabledAtTheStartAndNotBefore(t *testing.T) {
	for _, clock := range []struct{ name, script string }{
		{"right local clock", ""},
		{"local clock three days ahead", skewed(72 * time.Hour)},
		{"local clock three days behind", skewed(-72 * time.Hour)},
	} {
		t.Run(clock.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.products = []map[string]any{product(1, "Phone 17 Pro", time.Hour)}
			s.products[0]["status"] = "upcoming"
			b := openProduct(t, s, browser.Options{Script: clock.script})
			b.Until(isDark)
			b.Until(`/^(01:00:00|00:5\d:\d\d)$/.test(document.querySelector('.digits')?.textContent)`)
			b.Click("#buy")
			b.Shot("countdown " + clock.name)

			startsAt := b.startSoon(s)
			b.Until(isLit)
			if late := time.Since(startsAt); late < -100*time.Millisecond || late > litWithin {
				t.Errorf("the button lit %v after the start", late)
			}
			if n := len(s.purchases()); n != 0 {
				t.Errorf("a press before the start sent %d purchases", n)
			}
			b.UntilText("#announce", "The sale is open.")
		})
	}
}

// startSoon moves the start, as an operator does. The page learns it at its next
// request and then follows the clock alone.
func (b *tab) startSoon(s *stub) time.Time {
	startsAt := time.Now().Add(1500 * time.Millisecond)
	s.mu.Lock()
	s.products[0]["starts_at"] = startsAt
	s.mu.Unlock()
	b.Do(`document.dispatchEvent(new Event('visibilitychange'))`)
	return startsAt
}

func skewed(by time.Duration) string {
	return fmt.Sprintf(`{
		const Real = Date, skew = %d;
		globalThis.Date = class extends Real {
			constructor(...args) { args.length ? super(...args) : super(Real.now() + skew); }
			static now() { return Real.now() + skew; }
		};
	}`, by.Milliseconds())
}

func TestBuy_QueuedThenPendingThenPaid(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	b := openProduct(t, s, browser.Options{})
	b.Until(isLit)
	b.Shot("on sale")
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	b.Shot("queued")
	s.move("queued", "retrying")
	b.UntilText("#order .reason", "stays reserved")
	s.move("pending", "")
	b.UntilText("#order h2", "It’s yours!")
	b.Until(`/^(30:00|29:5\d)$/.test(document.querySelector('.left').textContent)`)
	b.Shot("pending")
	b.Click("#pay-sandbox")
	b.Until(`location.pathname === '/pay' && location.search === '?order=` + orderNo + `'`)
	s.move("paid", "")
	b.Open(s.URL + "/#/orders/" + orderNo)
	b.UntilText("#order h2", "Thank you!")
	b.Shot("paid")
	b.Click("nav a[href='#/orders']")
	b.UntilText(".order-card .badge", "Paid")
	b.Shot("orders")

	asked := s.purchases()
	if len(asked) != 1 || asked[0].quantity != 1 || len(asked[0].key) != 32 || asked[0].bearer == "" {
		t.Errorf("purchases sent: %+v", asked)
	}
	if left := eval[int](b, `Object.keys(localStorage).filter((k) => k.startsWith('seckill_intent')).length`); left != 0 {
		t.Errorf("%d intents are left after a certain answer", left)
	}
}

func TestAListThatMayMissOrdersSaysSo(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.move("pending", "")
	s.partial = true
	b := openProduct(t, s, browser.Options{})
	b.Open(s.URL + "/#/orders")
	b.UntilText("#orders-partial", "Not all of your orders can be shown")
	b.Until(`document.querySelector('.order-card') !== null`)
	s.mu.Lock()
	s.partial = false
	s.mu.Unlock()
	b.Open(s.URL + "/?again#/orders")
	b.Until(`document.querySelector('.order-card') !== null && document.querySelector('#orders-partial') === null`)
}

// The page itself notices that all units are sold and that one has come back. It
// checks at once when the shopper returns to the tab.
func TestReturnedUnits_EnableTheButtonAgain(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	become := func(status string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.products[0]["status"], s.products[0]["may_return_until"] = status, time.Now().Add(20*time.Minute)
	}
	b := openProduct(t, s, browser.Options{Script: `Math.random = () => 0;`})
	b.Until(isLit)
	become("sold_out")
	b.UntilText("#buy", "Sold out")
	become("on_sale")
	b.Until(isLit)
	become("sold_out")
	b.Do(`document.dispatchEvent(new Event('visibilitychange'))`)
	b.UntilText("#buy", "Sold out")
	b.UntilText("#message", "come back")
	s.mu.Lock()
	delete(s.products[0], "may_return_until")
	s.products[0]["all_paid"] = true
	s.mu.Unlock()
	b.UntilText("#message", "sold and paid for")
}

func TestQuantityAndPurchaseToken(t *testing.T) {
	s := newStub(t)
	p := product(1, "Cotton socks", -time.Minute)
	p["per_user_limit"], p["token_required"] = 3, true
	s.products = []map[string]any{p}
	b := openProduct(t, s, browser.Options{Width: 320, Height: 568})
	b.Until(isLit)
	for range 4 { // one more than allowed
		b.Do(`document.querySelector('.steps button:last-child').click()`)
	}
	b.UntilText(".steps output", "3")
	b.UntilText(".total", "20,997")
	b.Until(noScroll)
	b.Shot("stepper 320")
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	if asked := s.purchases(); len(asked) != 1 || asked[0].quantity != 3 || asked[0].token != "pass-1" {
		t.Errorf("purchases sent: %+v", asked)
	}
}

func TestCancelAsksFirst(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.noSSE = true // polling carries it as well
	s.move("pending", "")
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#/orders/" + orderNo)
	b.signIn()
	b.Click("#cancel")
	b.UntilText("dialog h2", "Cancel this order?")
	b.Shot("cancel")
	b.Click("#answer-no")
	b.Until(`!document.querySelector('dialog')`)
	if n := s.count("POST /api/v1/orders/" + orderNo + "/cancel"); n != 0 {
		t.Fatal("no was taken for yes")
	}
	b.Click("#cancel")
	b.Click("#answer-yes")
	b.UntilText("#order h2", "Order cancelled")
	b.UntilText("#order .reason", "You cancelled it.")
}

func TestPollingFollowsWhereStreamsDoNotWork(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.noSSE = true
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	s.move("failed", "sold_out")
	b.UntilText("#order h2", "This did not work out")
	b.UntilText("#order .reason", "The last units were gone")
	b.Shot("failed")
}

func TestChineseAndEnglish(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{
		product(1, "轻薄手机 17 Pro 256GB 深空黑", -time.Minute), product(2, "Wireless earbuds", 90*time.Minute),
		product(3, "纯棉袜子三双装", 50*time.Hour), product(4, "Espresso machine", -time.Hour),
	}
	s.products[3]["status"] = "sold_out"
	b := openTab(t, browser.Options{Language: "zh-CN", Dark: true})
	b.Open(s.URL)
	b.UntilText("#sign-in", "演示")
	b.Shot("zh list signed out dark")
	b.signIn()
	b.Until(`document.documentElement.lang === 'zh-CN'`)
	b.UntilText(".cards .badge", "抢购中")
	b.UntilText(".cards li:nth-child(2) .when", "距开始 01:")
	b.Click("a[href='#/products/1']")
	b.UntilText("#buy", "立即抢购")
	b.Shot("zh product dark")
	b.Click("#language")
	b.UntilText("#buy", "Buy now")
	b.Open(s.URL + "/?again#/products/1")
	b.UntilText("#buy", "Buy now") // the choice is remembered
	b.Until(`document.documentElement.lang === 'en'`)
	b.Click("#language")
	b.Click("#buy")
	b.UntilText("#order h2", "排队中")
	s.move("pending", "")
	b.UntilText("#order h2", "抢到了！")
	b.Shot("zh pending dark")
}

func TestOutsideTheDemoTheShopSignsIn(t *testing.T) {
	s := newStub(t)
	s.demo = false
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	b := openTab(t, browser.Options{})
	b.Open(s.URL + "/#/products/1")
	b.UntilText("#sign-in", "Please sign in at the shop")
	b.UntilText("#buy", "Sign in to buy")
	b.Shot("signed out")
	b.Open(s.URL + "/?from=shop#token=" + bearerOf("王小明"))
	b.Click("#answer-yes")
	b.Until(`document.querySelector('#sign-in').hidden && location.hash === ''`)
	b.Open(s.URL + "/?from=shop#/products/1")
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	if asked := s.purchases(); asked[0].bearer != bearerOf("王小明") {
		t.Errorf("the bearer is %q", asked[0].bearer)
	}
}

func TestExpiredSignInIsSaid(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	s.answers = []answer{{401, "unauthenticated", false}}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.Until(`!document.querySelector('#sign-in').hidden`)
	b.UntilText("#buy", "Sign in to buy")
}

func TestPagesFitEveryScreen(t *testing.T) {
	for _, size := range []struct{ width, height int64 }{{320, 568}, {390, 844}, {1280, 800}} {
		t.Run(fmt.Sprint(size.width), func(t *testing.T) {
			s := newStub(t)
			s.products = []map[string]any{
				product(1, "Phone 17 Pro Max Extraordinarily-Long-Model-Name 1 TB", -time.Minute),
				product(2, "Wireless earbuds", time.Hour), product(3, "Cotton socks", -time.Hour),
			}
			s.products[0]["price_cents"] = 1234567890
			b := openTab(t, browser.Options{Width: size.width, Height: size.height})
			b.Open(s.URL)
			b.Until(`document.querySelector('.demo button')?.getBoundingClientRect().right <= innerWidth - 16`)
			b.Until(noScroll)
			b.Shot(fmt.Sprint("signed out ", size.width))
			b.signIn()
			b.Until(`document.querySelectorAll('.card').length === 3`)
			b.Until(noScroll)
			b.Shot(fmt.Sprint("list ", size.width))
			b.Open(s.URL + "/#/products/1")
			b.Until(isLit)
			b.Until(noScroll)
			b.Until(`document.querySelector('#buy').getBoundingClientRect().bottom <= innerHeight`)
			b.Shot(fmt.Sprint("product ", size.width))
			s.move("pending", "")
			b.Open(s.URL + "/#/orders/" + orderNo)
			b.Until(`document.querySelector('#pay-sandbox') !== null`)
			b.Until(noScroll)
			b.Shot(fmt.Sprint("order ", size.width))
		})
	}
}

func TestKeyboardAloneCanBuy(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	b := openProduct(t, s, browser.Options{})
	b.Until(isLit)
	b.Do(`document.querySelector('#buy').focus()`)
	b.Press("\r")
	b.UntilText("#order h2", "You are in the queue")
	b.Until(`document.activeElement?.tagName === 'H1'`)
}

func TestWithoutAPayPageThePageSaysWhereToPay(t *testing.T) {
	s := newStub(t)
	p := product(1, "Phone 17 Pro", -time.Minute)
	p["payment_providers"] = []string{}
	s.products = []map[string]any{p}
	b := openProduct(t, s, browser.Options{})
	b.Click("#buy")
	b.UntilText("#order h2", "You are in the queue")
	s.move("pending", "")
	b.UntilText("#pay-elsewhere", "pay at the shop")
	b.Until(`!document.querySelector("[id^=pay-sandbox]")`)
}

// If an order must be paid, the page leads to the shop's own cashier with the order
// number. The cashier leads back to the page.
func TestShopsCashierKnowsTheOrderAndTheWayBack(t *testing.T) {
	for _, c := range []struct{ name, template, order string }{
		{"by placeholders", "/pay/{order_no}?to={return}", "path"},
		{"by parameters", "/pay?shop=7", "query"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub(t)
			cashier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				named := c.order == "path" && r.URL.Path == "/pay/"+orderNo || c.order == "query" && query.Get("order_no") == orderNo && query.Get("shop") == "7"
				if !named {
					t.Errorf("the cashier is asked for %s", r.URL)
				}
				s.move("paid", "")
				http.Redirect(w, r, cmp.Or(query.Get("to"), query.Get("return")), http.StatusSeeOther)
			}))
			t.Cleanup(cashier.Close)
			s.payURL = cashier.URL + c.template
			p := product(1, "Phone 17 Pro", -time.Minute)
			p["payment_providers"] = []string{}
			s.products = []map[string]any{p}
			b := openProduct(t, s, browser.Options{})
			b.Click("#buy")
			b.UntilText("#order h2", "You are in the queue")
			s.move("pending", "")
			b.UntilText("#pay-shop", "Pay CN¥6,999.00")
			b.Until(`!document.querySelector("#pay-elsewhere, [id^=pay-sandbox]")`)
			b.Accessible("to be paid at the shop's cashier")
			b.Click("#pay-shop")
			b.UntilText("#order h2", "Thank you!")
			b.Until(fmt.Sprintf(`location.hash === '#/orders/%s?link=look'`, orderNo)) // another browser may have bought
		})
	}
}

func TestProductList_ReadsFollowingPages(t *testing.T) {
	for name, c := range map[string]struct {
		products, own int
		cut, cutZh    string
	}{
		"to the end":            {250, 250, "", ""},
		"of which there is one": {100, 100, "", ""},
		"up to a bound": {2001, 2000, "Only the first 2000 products are shown here. The others have pages of their own.",
			"这里只显示前 2000 件商品，其余商品请通过各自的链接查看。"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			for i := range c.products {
				s.products = append(s.products, product(i+1, fmt.Sprintf("Phone %d", i+1), time.Hour))
			}
			b := openTab(t, browser.Options{})
			b.Open(s.URL)
			b.Until(fmt.Sprintf(`document.querySelectorAll('.cards > li').length === %d`, c.own))
			if c.cut == "" {
				b.Until(`!document.querySelector('#list-cut')`)
				return
			}
			b.UntilText("#list-cut", c.cut)
			b.Click("#language")
			b.UntilText("#list-cut", c.cutZh)
		})
	}
}
