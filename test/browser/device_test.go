package browser_test

import (
	"fmt"
	"testing"

	"seckill/test/browser"
)

const noScroll = `document.documentElement.scrollWidth <= document.documentElement.clientWidth`

func TestChineseShopperReadsChinese(t *testing.T) {
	shop := open(t, phone(5), nil)
	s := arrive(t, shop, "王小明", browser.Options{Language: "zh-CN", Dark: true})
	s.UntilText(".card .badge", "抢购中")
	s.visit(1)
	s.UntilText("#buy", "立即抢购")
	s.Click("#buy")
	s.UntilText("#order h2", "抢到了！")
	s.UntilText("#buyer", "王小明")
	s.Click("#language")
	s.UntilText("#order h2", "It’s yours!")
	s.Until(`document.documentElement.lang === 'en'`)
}

// Every step of a purchase fits the screen, and the button is always in sight.
func TestPurchaseFitsEveryDevice(t *testing.T) {
	shop := open(t, phone(9), nil)
	for _, size := range []struct{ width, height int64 }{{360, 640}, {390, 844}, {820, 1180}, {1440, 900}} {
		t.Run(fmt.Sprint(size.width), func(t *testing.T) {
			s := arrive(t, shop, fmt.Sprint("alice-", size.width), browser.Options{Width: size.width, Height: size.height})
			s.Until(`document.querySelector('.card') !== null`)
			s.Until(noScroll)
			s.visit(1)
			s.Until(isLit)
			s.Until(noScroll)
			s.Until(`document.querySelector('#buy').getBoundingClientRect().bottom <= innerHeight`)
			s.Until(`document.querySelector('#buy').getBoundingClientRect().height >= 44`) // for a thumb
			s.buy()
			s.Until(noScroll)
			s.Until(`document.querySelector('#pay-sandbox').getBoundingClientRect().bottom <= innerHeight`)
		})
	}
}

func TestKeyboardAloneCanBuy(t *testing.T) {
	shop := open(t, phone(5), nil)
	s := arrive(t, shop, "alice", browser.Options{Width: 1280, Height: 800})
	s.visit(1)
	s.Until(isLit)
	s.Until(`document.activeElement?.tagName === 'H1'`)
	for range 4 {
		if browser.Eval[bool](s.Tab, `document.activeElement?.id === 'buy'`) {
			break
		}
		s.Press("\t")
	}
	s.Press("\r")
	s.UntilText("#order h2", "It’s yours!")
	s.Until(`document.activeElement?.tagName === 'H1'`)
}
