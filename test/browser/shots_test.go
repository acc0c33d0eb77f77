package browser_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

// TestShots takes the pictures of the documents, of the real page at a real
// sale: `make shots`.
func TestShots(t *testing.T) {
	if os.Getenv(browser.ShotsEnv) == "" {
		t.Skip("only on request: make shots")
	}
	shop := engine.Start(t, engine.Options{})
	shotsOfASale(t, shop)
	shotsInChinese(t, shop)
	shotsAcross(t, shop)
	shotOfAChallenge(t)
}

// A shopper on a phone: the list, the countdown, the light, the order.
func shotsOfASale(t *testing.T, shop *engine.Engine) {
	offer(t, shop, engine.Product{ID: 1, Name: "Aurora X1 phone", ImageURL: "/art/phone.svg", Stock: 20, StartsAt: time.Now().Add(55 * time.Second)})
	offer(t, shop, engine.Product{
		ID: 2, Name: "Pocket headphones", ImageURL: "/art/headphones.svg", PriceCents: 9900, Stock: 50, PerUserLimit: 2, StartsAt: time.Now().Add(90 * time.Minute), EndsAt: time.Now().Add(4 * time.Hour),
	})
	s := arrive(t, shop, "alice", browser.Options{})
	s.shown(".card img")
	s.Shot("list")
	s.visit(1)
	s.shown(".art img")
	s.Shot("countdown")
	s.startsNow(1)
	s.Until(isLit)
	s.Until(`!document.querySelector('.buy').getAnimations().length`)
	s.Shot("open")
	s.buy()
	s.Shot("yours")
	s.Click("#pay-sandbox")
	s.Until(`document.querySelector('form button') !== null`)
	s.Click("form button")
	s.UntilText("#order h2", "Thank you!")
	s.Shot("paid")
	s.route("/orders")
	s.UntilText(".order-card .badge", "Paid")
	s.Shot("orders")
}

// The same in Chinese; and, in the dark, a sale that is sold out while a unit
// may still come back, and a login that will not last until a later sale.
func shotsInChinese(t *testing.T, shop *engine.Engine) {
	offer(t, shop, engine.Product{ID: 3, Name: "极光 X1 手机", ImageURL: "/art/phone.svg", Stock: 1})
	offer(t, shop, engine.Product{ID: 4, Name: "极光 X1 手机", ImageURL: "/art/phone.svg", Stock: 20})
	buyer := arrive(t, shop, "王小明", browser.Options{Language: "zh-CN"})
	buyer.visit(4)
	buyer.shown(".art img")
	buyer.Until(isLit)
	buyer.Until(`!document.querySelector('.buy').getAnimations().length`)
	buyer.Shot("open-zh")
	buyer.Click("#buy")
	buyer.UntilText("#order h2", "抢到了！")
	buyer.Shot("yours-zh")

	bob := shop.Buyer("bob")
	no, err := bob.Buy(context.Background(), 3, engine.Purchase{Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	waitStatus(t, bob, no, "pending")
	s := arriveUntil(t, shop, "王小明", time.Now().Add(40*time.Minute), browser.Options{Language: "zh-CN", Dark: true})
	s.visit(3)
	s.shown(".art img")
	s.UntilText("#message", "前退回")
	s.Shot("sold-out-zh-dark")
	s.visit(2)
	s.shown(".art img")
	s.UntilText("#login-ends", "失效")
	s.Shot("login-ends-zh-dark")
}

// A wide screen, a smaller phone, and no connection.
func shotsAcross(t *testing.T, shop *engine.Engine) {
	wide := arrive(t, shop, "carol", browser.Options{Width: 1280, Height: 720})
	wide.visit(2)
	wide.shown(".art img")
	wide.Shot("wide")
	small := arrive(t, shop, "dave", browser.Options{Width: 360, Height: 640})
	small.visit(1)
	small.shown(".art img")
	small.Until(isLit)
	small.Offline(true)
	small.Click("#buy")
	small.UntilText("#message", "No connection")
	small.Shot("no-connection")
}

// A picture to read, with the way out for whoever cannot.
func shotOfAChallenge(t *testing.T) {
	shop := open(t, phone(5), guarded("image"))
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.shown(".art img")
	s.Click("#buy")
	s.shown(".challenge-picture")
	s.Until(`document.activeElement?.id === 'challenge-answer'`)
	s.Shot("challenge")
}

// shown waits until pictures are there.
func (s *shopper) shown(selector string) {
	s.t.Helper()
	s.Until(fmt.Sprintf(`(() => { const all = [...document.querySelectorAll(%q)]; return all.length > 0 && all.every((i) => i.complete && i.naturalWidth > 0); })()`, selector))
}
