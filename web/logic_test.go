package web_test

import (
	"io/fs"
	"strings"
	"testing"

	"seckill/web"
)

// The pure modules are tested where they run: in the browser.
func TestPureModules(t *testing.T) {
	s := newStub(t)
	b := openTab(t, tabOptions{})
	b.open(s.URL)
	for _, c := range []struct{ name, module, expression, want string }{
		{"both languages have the same keys", "i18n.js", `
			Object.keys(m.WORDS.en).filter((k) => !(k in m.WORDS.zh)).concat(Object.keys(m.WORDS.zh).filter((k) => !(k in m.WORDS.en)))`, `[]`},
		{"both languages have the same placeholders", "i18n.js", `
			Object.keys(m.WORDS.en).filter((k) => [m.WORDS.en, m.WORDS.zh].map((w) => (w[k].match(/\{\w+\}/g) ?? []).sort().join()).reduce((a, b) => a !== b))`, `[]`},
		{"every reason of the engine is translated", "i18n.js", `
			['expired','by_buyer','limit','duplicate','sold_out','discarded','retrying','needs_care'].filter((r) => !m.WORDS.en['r_' + r])`, `[]`},
		{"the countdown rounds up and ends at the instant", "format.js", `
			[[90061000], [3000], [2001], [1], [0], [-5]].map(([ms]) => { const c = m.countdown(ms); return c.days + '.' + c.hours + '.' + c.minutes + '.' + c.seconds; })`,
			`["1.01.01.01","0.00.00.03","0.00.00.03","0.00.00.01","0.00.00.00","0.00.00.00"]`},
		{"hours show only when there are some", "format.js", `[m.shortCountdown(59000), m.shortCountdown(1800020), m.shortCountdown(3600000), m.shortCountdown(90000000)]`,
			`["00:59","30:00","01:00:00","25:00:00"]`},
		{"money follows its currency", "format.js", `[m.money(699900, 'CNY', 'zh-CN'), m.money(699900, 'USD', 'en'), m.money(500, 'JPY', 'en')]`,
			`["¥6,999.00","$6,999.00","¥500"]`},
		{"a sample stands in the middle of its round trip", "clock.js", `m.sampleOf(100, 140, 5000).offset`, `4880`},
		{"the shortest round trip wins", "clock.js", `
			m.better(m.sampleOf(0, 20, 1010), m.sampleOf(100, 400, 1200), 400).rtt + '/' + m.better(m.sampleOf(0, 300, 1150), m.sampleOf(400, 420, 1410), 420).rtt`,
			`"20/20"`},
		{"a sample that contradicts the old one replaces it", "clock.js", `m.better(m.sampleOf(0, 20, 1010), m.sampleOf(100, 400, 9000), 400).rtt`, `300`},
		{"lost samples are skipped", "clock.js", `(async () => {
			let n = 0, mono = 0;
			const clock = new m.ServerClock(async () => { mono += 10; if (n++ % 2) throw 0; return { now_ms: 1000 + mono - 5 }; }, () => mono);
			await clock.sync(async () => { mono += 100; });
			return [clock.ready, clock.now() - mono];
		})()`, `[true,1000]`},
		{"events arrive whole from any pieces", "api.js", `(() => {
			const got = [], feed = m.eventReader((d) => got.push(d));
			for (const c of ': hi\r\n\r\nevent: order\ndata: {"a":\ndata: 1}\n\nid: 2\r\ndata:two\r\n\r\ndata: cut') feed(c);
			return got;
		})()`, `["{\"a\":\n1}","two"]`},
		{"unknown codes are read by their status", "api.js", `[m.codeOf(409, 'sold_out'), m.codeOf(503, 'melting'), m.codeOf(429, undefined), m.codeOf(418, 'x')]`,
			`["sold_out","busy","rate_limited","bad_request"]`},
		{"Retry-After is seconds or a date", "api.js", `[
			m.retryAfter(new Headers({ 'Retry-After': '3' })),
			m.retryAfter(new Headers({ 'Retry-After': 'Wed, 21 Oct 2026 07:28:05 GMT', Date: 'Wed, 21 Oct 2026 07:28:00 GMT' })),
			m.retryAfter(new Headers())]`, `[3000,5000,0]`},
		{"waits grow, spread and end at their cap", "wait.js", `[m.backoff(0, 600, 8000, () => 0), m.backoff(2, 600, 8000, () => 1), m.backoff(30, 600, 8000, () => 1)]`,
			`[300,2400,8000]`},
		{"a product's picture is its initials", "format.js", `[m.initials('Phone 17 Pro'), m.initials('纯棉袜子'), m.initials('socks'), m.initials(' ')]`,
			`["P1","纯","so","?"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := eval[string](b, `import('/js/`+c.module+`').then((m) => `+c.expression+`).then((v) => JSON.stringify(v))`)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// pageBudget keeps the page light for a phone on a crowded network.
const pageBudget = 96 << 10

func TestPageIsLightAndOnlyItsOwn(t *testing.T) {
	total := 0
	err := fs.WalkDir(web.Shop(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(web.Shop(), path)
		total += len(data)
		for _, foreign := range []string{`src="http`, `href="http`, `from 'http`, "@import", "innerHTML", "eval("} {
			if strings.Contains(string(data), foreign) {
				t.Errorf("%s contains %s", path, foreign)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > pageBudget {
		t.Errorf("the page has %d bytes, more than %d", total, pageBudget)
	}
}
