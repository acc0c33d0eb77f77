package shop

import (
	"fmt"
	"testing"

	"seckill/test/browser"
)

// One purchase in a real browser: the page's script orders at the engine, a
// webhook brings the order to the shop, and a payment at the shop's cashier
// comes back as order.paid.
func TestStory_CustomerBuysAndPays(t *testing.T) {
	tab := browser.Open(t, browser.Options{})
	m := openMarket(t, nil)
	tab.Open(m.shop.url + "/sign-in")
	tab.Do(`document.querySelector('[name=name]').value = 'ann', document.querySelector('[name=password]').value = 'correct horse'`)
	tab.Click(`[formaction="/sign-up"]`)
	tab.UntilText("header", "(ann)")
	tab.Click(fmt.Sprintf(`a[href="/sales/%s"]`, sku))
	tab.Click("#buy")
	tab.UntilText("#status", "pending")
	tab.Shot("example shop")
	tab.Click("#pay")
	tab.UntilText("#status", "paid")
	tab.Open(m.shop.url + "/orders")
	tab.UntilText("main", "paid")
}

// The customer cancels the order instead of paying it.
func TestStory_CustomerCancels(t *testing.T) {
	tab := browser.Open(t, browser.Options{})
	m := openMarket(t, nil)
	tab.Open(m.shop.url + "/sign-in")
	tab.Do(`document.querySelector('[name=name]').value = 'bob', document.querySelector('[name=password]').value = 'correct horse'`)
	tab.Click(`[formaction="/sign-up"]`)
	tab.UntilText("header", "(bob)")
	tab.Open(m.shop.url + "/sales/" + sku)
	tab.Click("#buy")
	tab.Click("#cancel")
	tab.UntilText("#status", "cancelled")
}
