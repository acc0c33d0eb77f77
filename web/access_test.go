package web_test

import (
	"testing"
	"time"

	"seckill/test/browser"
)

// axe-core checks every state of the page: both languages, light and dark, narrow
// and wide.
func TestPageIsAccessible(t *testing.T) {
	for _, look := range []struct {
		name string
		o    browser.Options
	}{
		{"phone, light, English", browser.Options{Width: 360, Height: 740}},
		{"wide, dark, Chinese", browser.Options{Width: 1280, Height: 800, Dark: true, Language: "zh-CN"}},
	} {
		t.Run(look.name, func(t *testing.T) {
			lookThrough(t, look.o)
		})
	}
}

func lookThrough(t *testing.T, o browser.Options) {
	s := newStub(t)
	soon := product(2, "Wireless earbuds", time.Hour)
	soon["status"], soon["image_url"] = "upcoming", "/art/headphones.svg"
	gone := product(3, "Cotton socks", -time.Minute)
	gone["status"], gone["may_return_until"] = "sold_out", time.Now().Add(20*time.Minute)
	s.products = []map[string]any{guarded(-time.Minute), soon, gone}
	s.challenge = imageChallenge()
	o.Script = `Math.random = () => 1;`
	b := openTab(t, o)

	b.Open(s.URL)
	b.Until(`document.querySelectorAll('.card').length === 3 && document.querySelector('#demo-name')`)
	b.Accessible("list, signed out")
	b.signIn()
	b.Open(s.URL + "/#/products/2")
	b.Until(isDark)
	b.Accessible("before the start")
	b.Open(s.URL + "/#/products/3")
	b.Until(isDark)
	b.Accessible("sold out")
	b.Open(s.URL + "/#/products/1")
	b.Until(`document.querySelector('#challenge-answer') !== null`)
	b.Accessible("on sale, with a picture to read")
	s.mu.Lock()
	s.answers = []answer{{503, "too_hot", false}}
	s.mu.Unlock()
	b.Click("#buy")
	b.Until(`document.activeElement?.id === 'challenge-answer'`)
	b.Press("abcd\r")
	b.Until(`!document.querySelector('#stop').hidden && document.querySelector('#challenge').hidden`)
	b.Until(`document.activeElement?.id === 'buy'`)
	b.Accessible("too hot, trying again")
	b.Do(`document.querySelector('#stop').click()`)

	s.move("queued", "")
	b.Open(s.URL + "/#/orders/" + orderNo)
	b.Until(`document.querySelector('#order[data-status="queued"]') !== null`)
	b.Accessible("queued")
	s.move("pending", "")
	b.Until(`document.querySelector('#cancel') !== null`)
	b.Accessible("to be paid")
	b.Click("#cancel")
	b.Until(`document.querySelector('dialog') !== null`)
	b.Accessible("cancel?")
	b.Click("#answer-no")
	b.Open(s.URL + "/#/orders")
	b.Until(`document.querySelector('.order-card') !== null`)
	b.Accessible("orders")
	s.move("paid", "")
	b.Open(s.URL + "/#/orders/" + orderNo)
	b.Until(`document.querySelector('#order[data-status="paid"]') !== null`)
	b.Accessible("paid")
	b.Offline(true)
	b.Until(`!document.querySelector('#network').hidden`)
	b.Accessible("no connection")
}
