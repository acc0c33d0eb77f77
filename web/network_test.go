package web_test

import (
	"testing"
	"time"

	"seckill/test/browser"
)

func TestLostNetworkIsShownAndHeals(t *testing.T) {
	s := newStub(t)
	s.products = []map[string]any{product(1, "Phone 17 Pro", -time.Minute)}
	b := openProduct(t, s, browser.Options{})
	b.Until(isLit)
	b.Offline(true)
	b.UntilText("#network", "No connection")
	b.Click("#buy")
	b.UntilText("#message", "you cannot end up with two orders")
	b.Shot("offline")
	b.Offline(false)
	b.Until(`document.querySelector('#network').hidden`)
	b.UntilText("#order h2", "You are in the queue")
	if asked := s.purchases(); len(asked) != 1 {
		t.Errorf("purchases sent: %+v", asked)
	}
}

func TestPictureOfAProductOrItsInitials(t *testing.T) {
	s := newStub(t)
	with, broken := product(1, "Phone 17 Pro", time.Hour), product(2, "Cotton socks", time.Hour)
	with["image_url"], broken["image_url"] = "/art/phone.svg", "/art/none.svg"
	s.products = []map[string]any{with, broken}
	b := openTab(t, browser.Options{})
	b.Open(s.URL)
	b.Until(`document.querySelector('[href="#/products/1"] .art img')?.naturalWidth > 0`)
	b.UntilText(`[href="#/products/2"] .art`, "Co")
	b.Shot("pictures")
}
