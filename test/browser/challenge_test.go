package browser_test

import (
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

// guarded are the settings of a shop that asks every buyer for a challenge.
func guarded(kind string) map[string]string {
	return map[string]string{"token.required": "true", "token.lead": "1m", "challenge.kind": kind, "challenge.pow_bits": "10"}
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
	s.Accessible("a picture to read")
	s.Press("nonsense\r")
	s.UntilText("#challenge", "That was not it")
	s.Click("#challenge-work")
	s.UntilText("#order h2", "It’s yours!") // the press goes on by itself
	onlyOrder(t, shop, "alice")
}
