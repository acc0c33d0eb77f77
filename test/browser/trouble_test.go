package browser_test

import (
	"context"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

func TestLostNetworkBringsOneOrder(t *testing.T) {
	shop := open(t, phone(5), nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.Until(isLit)
	s.Offline(true)
	s.UntilText("#network", "No connection")
	s.Click("#buy")
	s.UntilText("#message", "you cannot end up with two orders")
	s.Offline(false)
	s.Until(`document.querySelector('#network').hidden`)
	s.UntilText("#order h2", "It’s yours!")
	onlyOrder(t, shop, "alice")
}

// A shop that is away for a while loses nobody: the page waits and goes on.
func TestShopThatComesBackIsFoundAgain(t *testing.T) {
	shop := open(t, phone(5), nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.Until(isLit)
	shop.Kill()
	s.Click("#buy")
	s.UntilText("#message", "No connection")
	shop.Start()
	s.UntilText("#order h2", "It’s yours!")
	onlyOrder(t, shop, "alice")
}

func onlyOrder(t *testing.T, shop *engine.Engine, name string) {
	t.Helper()
	orders, err := shop.Buyer(name).Orders(context.Background())
	if err != nil || len(orders) != 1 {
		t.Errorf("%s has %d orders, %v", name, len(orders), err)
	}
}

func TestLogin_WarnsBeforeItExpires(t *testing.T) {
	p := phone(5)
	p.StartsAt = time.Now().Add(time.Hour)
	p.EndsAt = p.StartsAt.Add(time.Hour)
	shop := open(t, p, nil)
	s := arriveUntil(t, shop, "alice", time.Now().Add(30*time.Minute), browser.Options{})
	s.visit(1)
	s.UntilText("#login-ends", "too early for this sale")
	s.Click("#login-again")
	s.UntilText("#sign-in", "sign in at the shop") // this shop has no login page to go to
	s.Open(shop.ShopURL + "/?again#token=" + bearer(t, "alice", time.Now().Add(24*time.Hour)))
	s.Click("#answer-yes")
	s.Until(`localStorage.seckill_token`)
	s.visit(1)
	s.Until(`document.querySelector('#login-ends').hidden`)
}

func TestForgedLoginIsNotTaken(t *testing.T) {
	shop := open(t, phone(5), nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.Until(isLit)
	s.Do(`localStorage.setItem('seckill_token', localStorage.seckill_token.replace(/.$/, (c) => c === 'A' ? 'B' : 'A').replace(/\.[^.]+$/, '.forged'))`)
	s.Open(shop.ShopURL + "/?again#/products/1")
	s.Until(isLit)
	s.Click("#buy")
	s.UntilText("#buy", "Sign in to buy")
}
