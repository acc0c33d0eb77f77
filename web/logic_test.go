package web_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"strings"
	"testing"

	"seckill/internal/shopapi"
	"seckill/test/browser"
	"seckill/web"
)

// The pure modules are tested in the browser, where they run.
func TestPureModules(t *testing.T) {
	s := newStub(t)
	b := openTab(t, browser.Options{})
	b.Open(s.URL)
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
		{"local clocks that part are noticed, drift is not", "clock.js", `[
			m.stepped({ wall: 5000, mono: 100 }, { wall: 6000, mono: 1100 }), m.stepped({ wall: 5000, mono: 100 }, { wall: 6040, mono: 1100 }),
			m.stepped({ wall: 5000, mono: 100 }, { wall: 9e6, mono: 1100 }), m.stepped({ wall: 5000, mono: 100 }, { wall: -9e6, mono: 1100 })]`,
			`[false,false,true,true]`},
		{"a correction is told", "clock.js", `(async () => {
			let mono = 0, told = 0;
			const clock = new m.ServerClock(async () => { mono += 10; return { now_ms: 1000 + mono }; }, () => mono);
			clock.addEventListener('change', () => told++);
			await clock.sync(async () => {}, 1);
			return told;
		})()`, `1`},
		{"the API is where the page is, or where its export says", "api.js", `
			['', 'https://api.example/shop', 'https://api.example/'].map((content) =>
				m.baseOf({ baseURI: 'https://cdn.example/sale/index.html?x=1#/orders', querySelector: () => ({ content }) }))`, `["https://cdn.example/sale/","https://api.example/shop/","https://api.example/"]`},
		{"a path is a picture of the API's server, and scripts are none", "view/parts.js", `
			['/art/1.svg', 'https://img.example/1.jpg', undefined, '', 'javascript:alert(1)', 'data:image/png;base64,AA'].map((u) => m.pictureAddress(u, 'https://api.example/shop/'))`,
			`["https://api.example/art/1.svg","https://img.example/1.jpg","","","",""]`},
		{"the login's address carries the way back, without the route", "login.js", `(() => {
			const at = { origin: 'https://sale.example', pathname: '/s/', search: '?a=1', href: 'https://sale.example/s/?a=1#/products/1' };
			return ['login?x=1', 'in/{return}', 'in/{state}/{return}?s={state}'].map((u) => m.loginAddress('https://shop.example/' + u, at, 'st'));
		})()`, `["https://shop.example/login?x=1&return=https%3A%2F%2Fsale.example%2Fs%2F%3Fa%3D1&state=st",` +
			`"https://shop.example/in/https%3A%2F%2Fsale.example%2Fs%2F%3Fa%3D1?state=st","https://shop.example/in/st/https%3A%2F%2Fsale.example%2Fs%2F%3Fa%3D1?s=st"]`},
		{"an address takes what it names where it names it, and the rest as parameters", "address.js", `
			['pay/{no}?to={back}', 'pay?no=1', '{other}'].map((u) => m.fill('https://shop.example/' + u, { no: 'SK&1', back: 'https://a.example/#/x' }, 'https://a.example/'))`,
			`["https://shop.example/pay/SK%261?to=https%3A%2F%2Fa.example%2F%23%2Fx","https://shop.example/pay?no=SK%261&back=https%3A%2F%2Fa.example%2F%23%2Fx","https://shop.example/%7Bother%7D?no=SK%261&back=https%3A%2F%2Fa.example%2F%23%2Fx"]`},
		{"a tab knows the state that it left with, once, and no other", "login.js", `(() => {
			let to;
			m.leaveForLogin('https://shop.example/login', { hash: '#/', origin: 'https://sale.example', pathname: '/', search: '', href: 'https://sale.example/', assign: (url) => { to = new URL(url); } });
			const state = to.searchParams.get('state');
			localStorage.removeItem('seckill_place');
			return [state.length, ['', undefined, 'x', state.slice(1), state, state].map((s) => m.isOwnState(s))];
		})()`, `[32,[false,false,false,false,true,false]]`},
		{"a hand-over leaves the address at once and signs nobody in", "session.js", `(() => {
			const was = localStorage.getItem('seckill_token');
			const seen = [], history = { replaceState: (a, b, url) => seen.push(url) };
			const got = ['#/products/1?code=a%2Fb&x=1', '#code=c&state=s%2B', '#state=s&token=t', '#/orders?code=%&state=', '#code=c&x=1', '#/products/1'].map((hash) => {
				const handed = m.takeHandOver({ hash, pathname: '/', search: '' }, history);
				return handed && [handed.kind, handed.value, handed.state].join();
			});
			return [got, seen, localStorage.getItem('seckill_token') === was];
		})()`, `[["code,a/b,","code,c,s+","token,t,s","code,%,","code,c,",null],["/#/products/1&x=1","/","/","/#/orders","/#x=1"],true]`},
		{"a login must outlast the start by five minutes", "session.js", `
			[[0, 1e6, 0], [1e6, 1e6, 0], [1e6 + 299999, 1e6, 0], [1e6 + 300000, 1e6, 0], [3e6, 1e6, 2.9e6]].map((a) => m.endsEarly(...a))`,
			`[false,true,true,false,true]`},
		{"tokens are asked for spread over the time until the start, and renewed before their end", "pass.js", `(() => {
			const p = { starts_at: '2026-01-01T00:01:00Z', token_opens_at: '2026-01-01T00:00:00Z' };
			const opens = Date.parse(p.token_opens_at), at = (held, chance) => m.dueAt(p, held, chance) - opens;
			const short = { ...p, token_opens_at: '2026-01-01T00:00:50Z' };
			return [at(null, 0), at(null, 1), m.dueAt(short, null, 1) - opens, at({ from: opens, until: opens + 120000 }, 0), at({ from: opens, until: opens + 120000 }, 1),
				at({ from: opens, until: opens + 30000 }, 1), m.dueAt({ starts_at: p.starts_at }, null, 0)];
		})()`, `[0,20000,55000,105000,90000,20000,null]`},
		{"the bar of the work never reaches its end by itself", "prove.js", `[0, 1, 2, 8].map((n) => m.share(n * 2 ** 16, 16).toFixed(3))`, `["0.000","0.632","0.865","1.000"]`},
		{"presses are spread in the rush only", "purchase.js", `(() => {
			const p = { starts_at: '2026-01-01T00:00:00Z' }, start = Date.parse(p.starts_at);
			return [10, 4999, 5001].map((after) => new m.Purchase(null, { now: () => start + after }, 'b', null, () => 0.5).spread(p));
		})()`, `[150,150,0]`},
		{"sold out says whether waiting makes sense", "view/face.js", `
			[NaN, 60000, -1].map((returns) => m.faceOf({ status: 'sold_out', phase: { kind: 'idle', left: 0 }, signedIn: true, mine: null, limit: 1, returns }).message)`,
			`["say_sold_out","say_sold_out_until","say_sold_out_all"]`},
		{"a press that waits for a person's answer does not say that it queues", "view/face.js", `
			[true, false].map((unanswered) => m.faceOf({ status: 'on_sale', phase: { kind: 'asking', left: 0, unanswered }, signedIn: true, mine: null, limit: 1, checks: true, returns: NaN }))
				.map(({ label, busy, enabled }) => [label, Boolean(busy), enabled].join())`,
			`["buy_answer,false,false","buy_asking,true,false"]`},
		{"every state of the button is disabled but those that lead on", "view/face.js", `
			[['upcoming', 'idle'], ['on_sale', 'asking'], ['on_sale', 'waiting'], ['on_sale', 'refused', 4000], ['on_sale', 'refused', 0], ['paused', 'idle'], ['ended', 'idle'], ['sold_out', 'idle'], ['on_sale', 'idle']]
				.filter(([status, kind, left = 0]) => m.faceOf({ status, phase: { kind, left, code: 'busy', message: 'x' }, signedIn: true, mine: null, limit: 1, returns: NaN }).enabled).map(String)`,
			`["on_sale,refused,0","on_sale,idle"]`},
		{"an open page looks every few seconds, ever more seldom, and never just before the start", "view/look.js", `
			[['on_sale', 0], ['on_sale', 35], ['on_sale', 37], ['on_sale', 99], ['paused', 0], ['sold_out', 0], ['sold_out', 99], ['sold_out', 0, 60000], ['sold_out', 99, 60000], ['sold_out', 2, -1], ['ended', 0], ['upcoming', 9]]
				.map(([status, looks, returns = NaN]) => m.lookIn({ status, looks, returns, left: 3600000 }, 0.5))
				.concat([m.lookIn({ status: 'on_sale', looks: 0, returns: NaN, left: 0 }, 0), m.lookIn({ status: 'on_sale', looks: 0, returns: NaN, left: 0 }, 1)],
					[70000, 30000].flatMap((left) => [0, 1].map((chance) => m.lookIn({ status: 'upcoming', looks: 0, returns: NaN, left }, chance) - left))).map(Math.round)`,
			`[5000,5000,7500,15000,5000,4000,60000,4000,8000,9000,60000,60000,4000,6000,-22000,5000,0,5000]`},
		{"a lost network is told once, probed, and told when it is back", "network.js", `new Promise((resolve) => {
			let probes = 0;
			const told = [], net = new m.Network(async () => { if (++probes === 2) net.answered(); }, () => 0);
			net.addEventListener('change', () => told.push(net.lost));
			net.addEventListener('healed', () => resolve([told, probes]));
			net.missed(); net.missed();
		})`, `[[true,false],2]`},
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

// pageBudget bounds the compressed size of all files, so that the page loads quickly
// on a phone in a crowded network. The demo's pictures do not count.
const pageBudget = 60 << 10

func TestPageIsLight(t *testing.T) {
	files, err := shopapi.BuildPage(web.Shop(), shopapi.PageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		if !strings.HasPrefix(file.Name, "art/") {
			total += packedSize(t, file.Body)
		}
	}
	t.Logf("the page has %d bytes compressed", total)
	if total > pageBudget {
		t.Errorf("the page has %d bytes compressed, more than %d", total, pageBudget)
	}
}

func TestPage_LoadsOnlyOwnFilesAndNothingInline(t *testing.T) {
	err := fs.WalkDir(web.Shop(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(web.Shop(), path)
		for _, foreign := range []string{`src="http`, `href="http`, `from 'http`, "@import", "innerHTML", "eval(", "style=", `onclick="`} {
			if strings.Contains(string(data), foreign) {
				t.Errorf("%s contains %s", path, foreign)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func packedSize(t *testing.T, data []byte) int {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Len()
}
