package browser_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"seckill/test/browser"
	"seckill/test/engine"
)

// The button lights for everybody within this time of the start.
const litWithin = 100 * time.Millisecond

// earlyBy is what half a round trip on one machine may be wrong.
const earlyBy = 20 * time.Millisecond

// starts is how often the start is tried: a machine that stood still at one
// start says nothing about the page, and a page that is wrong is so each time.
const starts = 4

// seeLight notes when the button lights, by the machine's own clock, which the
// stories of wrong clocks do not touch.
const seeLight = `
	globalThis.trueNow = () => performance.timeOrigin + performance.now();
	new MutationObserver(() => {
		if (!globalThis.litAt && document.querySelector('#buy')?.getAttribute('aria-disabled') === 'false') globalThis.litAt = trueNow();
	}).observe(document, { subtree: true, childList: true, attributes: true });`

// skewed is a local clock that is wrong from the beginning.
func skewed(by time.Duration) string {
	return fmt.Sprintf(`{
		const Real = Date;
		let skew = %d;
		globalThis.setSkew = (ms) => { skew = ms; };
		globalThis.Date = class extends Real {
			constructor(...args) { args.length ? super(...args) : super(Real.now() + skew); }
			static now() { return Real.now() + skew; }
		};
	}`, by.Milliseconds())
}

func TestButtonLightsForAllAtTheStart(t *testing.T) {
	for _, clock := range []struct {
		name, script string
		jump         string // what happens to the clock before the start
	}{
		{"right clock", "", ""},
		{"clock five hours ahead", skewed(5 * time.Hour), ""},
		{"clock five hours behind", skewed(-5 * time.Hour), ""},
		{"clock that jumps", skewed(0), `setSkew(3 * 3600e3)`},
	} {
		t.Run(clock.name, func(t *testing.T) {
			t.Parallel()
			shop := engine.Start(t, engine.Options{})
			s := arrive(t, shop, "alice", browser.Options{Script: clock.script + seeLight})
			var late []time.Duration
			for try := range uint32(starts) {
				late = append(late, lateness(t, s, try+1, clock.jump))
				if last := late[try]; last < -earlyBy {
					t.Fatalf("the button lit %v before the start", -last)
				} else if last <= litWithin {
					t.Logf("the button lit %v after the start", last)
					return
				}
			}
			t.Errorf("the button lit late at every start: %v", late)
		})
	}
}

// lateness is how long after its start the button of a new product lights.
func lateness(t *testing.T, s *shopper, product uint32, jump string) time.Duration {
	t.Helper()
	startsAt := time.Now().Add(4 * time.Second).Truncate(time.Millisecond)
	offer(t, s.shop, engine.Product{ID: product, Name: "Aurora X1 phone", Stock: 10, StartsAt: startsAt})
	s.Do(`globalThis.litAt = 0`)
	s.visit(product)
	s.Until(fmt.Sprintf(`(%s) && /^00:00:0[1-4]$/.test(document.querySelector('.digits')?.textContent) || trueNow() > %d`, isDark, startsAt.UnixMilli()))
	if past := time.Since(startsAt); past >= 0 {
		return litWithin + past // the page came after the start, which counts as late
	}
	if jump != "" {
		s.Do(jump)
	}
	s.Click("#buy") // too early: nothing happens
	s.Until(`globalThis.litAt`)
	litAt := browser.Eval[float64](s.Tab, `litAt`)
	return time.Duration(math.Round(litAt*1e3))*time.Microsecond - time.Duration(startsAt.UnixMicro())*time.Microsecond
}

func TestBeforeTheStartNothingCanBeBought(t *testing.T) {
	p := phone(10)
	p.StartsAt = time.Now().Add(time.Hour)
	p.EndsAt = p.StartsAt.Add(time.Hour)
	shop := open(t, p, nil)
	s := arrive(t, shop, "alice", browser.Options{})
	s.UntilText(".card .badge", "Coming soon")
	s.UntilText(".card .when", "Starts in 59:")
	s.visit(1)
	s.UntilText("#buy", "Opens at")
	s.UntilText("#message", "lights up when the sale opens")
	s.Click("#buy")
	s.Press("\r")
	s.UntilText(".digits", "00:59:5")
	s.route("/orders")
	s.UntilText("#main", "No orders yet.")
}
