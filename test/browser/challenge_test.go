package browser_test

import (
	"context"
	"fmt"
	"path"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

// guarded are the settings of a shop that asks every buyer for a challenge.
func guarded(kind string) map[string]string {
	return map[string]string{
		"token.required": "true", "token.lead": "1m", "challenge.kind": kind, "challenge.pow_bits": "10",
		"challenge.verify_url": "http://127.0.0.1:1/verify", "challenge.verify_secret": "0123456789abcdef", "challenge.widget_url": "https://shop.example/check",
	}
}

// The device proves itself before the start, so that the press at the start
// needs nothing more.
func TestWorkIsDoneBeforeTheStart(t *testing.T) {
	shop := engine.Start(t, engine.Options{Settings: guarded("pow")})
	s := arrive(t, shop, "alice", browser.Options{Script: `
		globalThis.asked = [];
		new PerformanceObserver((list) => list.getEntries().forEach((e) => asked.push(e.name))).observe({ type: 'resource', buffered: true });`})
	p := phone(3)
	p.StartsAt = time.Now().Add(6 * time.Second)
	offer(t, shop, p)
	s.visit(1)
	s.Until(isDark)
	s.Until(`asked.some((name) => name.endsWith('/token'))`)
	s.Until(isDark) // still before the start
	s.buy()
	if n := browser.Eval[int](s.Tab, `asked.filter((name) => name.endsWith('/challenge')).length`); n != 1 {
		t.Errorf("%d challenges were asked for", n)
	}
}

// Whoever cannot read the picture has the device work instead, and buys.
func TestPictureHasAnAccessibleAlternative(t *testing.T) {
	shop := open(t, phone(3), guarded("image"))
	s := arrive(t, shop, "alice", browser.Options{})
	s.visit(1)
	s.Until(isLit)
	s.Click("#buy")
	s.Until(`document.querySelector('.challenge-picture')?.naturalWidth > 0`)
	s.Until(`document.activeElement?.id === 'challenge-answer'`)
	s.UntilText("#message", "One small check first")
	s.UntilText("#buy", "Answer the check first")
	s.Accessible("a picture to read")
	s.Press("nonsense\r")
	s.UntilText("#challenge", "That was not it")
	s.Click("#challenge-work")
	s.UntilText("#order h2", "It’s yours!") // the press goes on by itself
	onlyOrder(t, shop, "alice")
}

// What a person is asked is in sight at once, with the button, on whatever they
// hold: before the start, at the start, and after a press.
func TestChallengeIsInSightWithTheButton(t *testing.T) {
	shops := map[string]*engine.Engine{}
	for _, kind := range []string{"image", "shop"} {
		shops[kind] = engine.Start(t, engine.Options{Settings: guarded(kind)})
	}
	what := map[string]string{"image": ".challenge-picture", "shop": "#challenge-open"}
	for i, look := range []struct {
		name, kind string
		limit      int
		axe        bool // on other screens the same elements have the same colours
		o          browser.Options
	}{
		{"phone", "image", 1, true, browser.Options{Width: 390, Height: 664}},
		{"phone, the shop's own check", "shop", 2, true, browser.Options{Width: 390, Height: 664}},
		{"small phone, Chinese, dark", "image", 2, true, browser.Options{Width: 360, Height: 640, Language: "zh-CN", Dark: true}},
		{"phone on its side", "image", 2, false, browser.Options{Width: 844, Height: 390}},
		{"laptop", "image", 2, false, browser.Options{Width: 1280, Height: 650}},
	} {
		t.Run(look.name, func(t *testing.T) {
			shop, asked := shops[look.kind], what[look.kind]
			p := phone(3)
			p.ID, p.PerUserLimit, p.StartsAt = uint32(i+1), look.limit, time.Now().Add(50*time.Second)
			offer(t, shop, p)
			look.o.Script = `Math.random = () => 0;` // asks at once, not spread over the crowd
			s := arrive(t, shop, "alice", look.o)
			s.visit(p.ID)
			s.seesAll("before the start", asked)
			s.Until(isDark)
			s.accessible("a check before the start", look.axe)
			s.startsNow(p.ID)
			s.Until(isLit)
			s.seesAll("at the start", asked)
			s.Click("#buy")
			s.Until(`document.activeElement?.closest('#challenge') !== null`)
			s.seesAll("after the press", asked)
			s.accessible("a check after the press", look.axe)
		})
	}
}

func (s *shopper) accessible(state string, look bool) {
	s.t.Helper()
	if look {
		s.Accessible(state)
	}
}

// startsNow has the operator start a sale early, and the page look again.
func (s *shopper) startsNow(product uint32) {
	s.t.Helper()
	if _, err := s.shop.Operator().Patch(context.Background(), product, map[string]any{"starts_at": time.Now()}); err != nil {
		s.t.Fatal(err)
	}
	s.Do(`document.dispatchEvent(new Event('visibilitychange'))`)
}

// seesAll waits for what is asked, and holds that it, the field and the button
// lie within the screen and that nothing covers them.
func (s *shopper) seesAll(when, asked string) {
	s.t.Helper()
	s.Until(fmt.Sprintf(`document.querySelector(%q)?.offsetHeight > 40`, asked))
	s.Shot("challenge " + when + ", " + path.Base(s.t.Name()))
	hidden := browser.Eval[string](s.Tab, fmt.Sprintf(`[%q, '#challenge-answer', '#buy'].filter((what) => {
		const node = document.querySelector(what);
		const { top, left, bottom, right } = node.getBoundingClientRect();
		const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
		return !(top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth && node.contains(seen));
	}).join(' ')`, asked))
	if hidden != "" {
		s.t.Errorf("%s, out of sight: %s", when, hidden)
	}
	s.Until(noScroll)
}
