package admission

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"

	"seckill/internal/sale"
	"seckill/test/login"
)

var (
	secret = []byte("a secret of the gates' own tests")
	addr   = netip.MustParseAddr("192.0.2.7")
)

// shelf is a catalogue with one product.
type shelf struct{ terms seckill.Product }

func (s *shelf) Product(context.Context, uint32) (seckill.Product, error) { return s.terms, nil }

func (s *shelf) CurrentProducts(context.Context) ([]seckill.Product, error) {
	return []seckill.Product{s.terms}, nil
}

type memory map[string]bool

func (m memory) MayHold(_ uint32, buyer []byte) bool { return m[string(buyer)] }

// door is the gates of one open sale.
type door struct {
	*Doorkeeper
	shelf   *shelf
	catalog *sale.Catalog
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func newDoor(t testing.TB) *door {
	t.Helper()
	now := time.Now()
	d := &door{shelf: &shelf{seckill.Product{
		ID: 7, Group: 7, PerUserLimit: 2, Shards: 1, Epoch: 1, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	}}}
	log := slog.New(slog.DiscardHandler)
	d.catalog = sale.NewCatalog(d.shelf)
	buyers, err := auth.OpenVerifier(auth.VerifierOptions{Secrets: [][]byte{secret}})
	must(t, err)
	tokens, err := auth.NewMint(secret)
	must(t, err)
	d.Doorkeeper = &Doorkeeper{
		Clock:  sale.NewClock(func(context.Context) (time.Time, error) { return time.Now(), nil }, log),
		Buyers: buyers, Memory: memory{}, Tokens: tokens,
	}
	return d
}

// on returns the sale after a change of the shelf.
func (d *door) on(t testing.TB) *sale.Sale {
	t.Helper()
	must(t, d.catalog.Refresh(t.Context()))
	return d.catalog.Find(7)
}

func bearer(t testing.TB, buyer string) []byte {
	t.Helper()
	token, err := login.Token(secret, buyer, time.Now().Add(time.Hour))
	must(t, err)
	return []byte("Bearer " + token)
}

// token makes a purchase token for a buyer and a product.
func (d *door) token(t testing.TB, buyer string, product uint32) string {
	t.Helper()
	var id auth.TokenID
	_, err := rand.Read(id[:])
	must(t, err)
	token, err := d.Tokens.Issue(id, buyer, product, d.Clock.Now().Add(time.Minute))
	must(t, err)
	return token
}

// spent returns a limiter with no budget left for the key.
func spent(t testing.TB, use func(*Limiter, time.Time)) *Limiter {
	t.Helper()
	l, err := New(Options{PerSecond: 0.01, Burst: 1})
	must(t, err)
	use(l, time.Now())
	return l
}

// A claim that is wrong in every way is refused by the first gate. After this is
// mended, the next gate refuses it, and so on. The last one, the bounded queue, belongs
// to the purchase stage.
func TestAdmit_GatesAreInOrder(t *testing.T) {
	d := newDoor(t)
	d.TokenRequired = true
	d.ByAddr = spent(t, func(l *Limiter, now time.Time) { l.Allow(AddrKey(addr), now) })
	d.ByProduct = spent(t, func(l *Limiter, now time.Time) { l.Allow(ProductKey(7), now) })
	d.ByBuyer = spent(t, func(l *Limiter, now time.Time) { l.Allow(BytesKey([]byte("bob")), now) })
	d.shelf.terms.State = seckill.SaleEnded
	on := d.on(t)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	auth, body := []byte("Bearer nonsense"), `{"quantity":9}`

	var met []Gate
	for i, step := range []struct {
		gate  Gate
		code  seckill.Code
		mend  func() // corrects the reason of this gate's refusal
		limit bool
	}{
		{GateWindow, seckill.CodeEnded, func() { d.shelf.terms.State = seckill.SalePaused }, false},
		{GateWindow, seckill.CodePaused, func() { d.shelf.terms.State = seckill.SaleOpen; d.shelf.terms.StartsAt = time.Now().Add(time.Minute) }, false},
		{GateWindow, seckill.CodeNotStarted, func() { d.shelf.terms.StartsAt = time.Now().Add(-time.Minute) }, false},
		{GateSoldOut, seckill.CodeSoldOut, func() { on.ClearSoldOut() }, false},
		{GateAddressRate, seckill.CodeRateLimited, func() { d.ByAddr = nil }, true},
		{GateBuyer, seckill.CodeUnauthenticated, func() { auth = bearer(t, "bob") }, false},
		{GateBuyerRate, seckill.CodeRateLimited, func() { d.ByBuyer = nil }, true},
		{GateBody, seckill.CodeBadRequest, func() { body = `{"quantity":2}` }, false},
		{GateToken, seckill.CodeTokenInvalid, func() {
			body = fmt.Sprintf(`{"quantity":2,"ref":"r","token":%q}`, d.token(t, "bob", 7))
		}, false},
		{GateProductRate, seckill.CodeRateLimited, func() { d.ByProduct = nil }, true},
	} {
		var pass Pass
		got := d.Admit(on, &Request{Authorization: auth, Addr: addr, Body: []byte(body)}, &pass)
		if got.Gate != step.gate || got.Code != step.code || step.limit != (got.RetryAfter > time.Second) {
			t.Fatalf("step %d was refused by %+v, want %s %s", i, got, step.gate, step.code)
		}
		met = append(met, got.Gate)
		step.mend()
		on = d.on(t)
	}
	if want := Gates[:len(Gates)-1]; !slices.Equal(slices.Compact(met), want) {
		t.Errorf("met %v, want %v", met, want)
	}
	var pass Pass
	if got := d.Admit(on, &Request{Authorization: auth, Addr: addr, Body: []byte(body)}, &pass); got != (Refusal{}) {
		t.Fatalf("refused by %+v", got)
	}
	if pass.Buyer != "bob" || pass.Quantity != 2 || pass.Ref != "r" || pass.Key == "" {
		t.Errorf("the pass is %+v", pass)
	}
}

// A buyer who may have an order passes a raised flag; an unverified one does not. An
// instance learns late, or never, of the direct sales of another instance.
func TestSoldOut_VerifiedBuyersReachASharedStore(t *testing.T) {
	d := newDoor(t)
	d.shelf.terms.Strategy = seckill.StrategyDirect
	on := d.on(t)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	for _, c := range []struct {
		shared bool
		asks   []byte
		want   seckill.Code
	}{
		{true, bearer(t, "eve"), ""},
		{true, nil, seckill.CodeSoldOut},
		{true, append(bearer(t, "bob"), 'x'), seckill.CodeSoldOut},
		{false, bearer(t, "eve"), seckill.CodeSoldOut},
	} {
		d.Shared = c.shared
		refusal := d.Admit(on, &Request{Authorization: c.asks, Addr: addr, Body: []byte(`{"quantity":1}`)}, &Pass{})
		if refusal.Code != c.want {
			t.Errorf("shared %t, %q: %q, want %q", c.shared, c.asks, refusal.Code, c.want)
		}
	}
}

func TestSoldOut_RememberedBuyersPass(t *testing.T) {
	d := newDoor(t)
	d.Memory = memory{"bob": true}
	on := d.on(t)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		auth []byte
		want seckill.Code
	}{
		"remembered":      {bearer(t, "bob"), ""},
		"unknown":         {bearer(t, "eve"), seckill.CodeSoldOut},
		"nobody":          {nil, seckill.CodeSoldOut},
		"a forged bearer": {append(bearer(t, "bob"), 'x'), seckill.CodeSoldOut},
	} {
		var pass Pass
		got := d.Admit(on, &Request{Authorization: c.auth, Addr: addr, Body: []byte(`{}`)}, &pass)
		if got.Code != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Nothing is left for any of them: neither a crowd with new tokens nor a crowd of
// forgers costs a signature check.
func TestSoldOut_UnknownBuyersCostNoSignatureCheck(t *testing.T) {
	d := newDoor(t)
	looked := &counting{Buyers: d.Buyers}
	d.Buyers, d.Memory = looked, memory{"bob": true}
	on := d.on(t)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	ask := func(auth []byte) Refusal {
		return d.Admit(on, &Request{Authorization: auth, Addr: addr, Body: []byte(`{}`)}, &Pass{})
	}
	for _, auth := range [][]byte{bearer(t, "eve"), append(bearer(t, "eve"), 'x'), []byte("Bearer a.b.c"), []byte("Basic eve")} {
		if got := ask(auth); got.Code != seckill.CodeSoldOut || looked.looks != 0 {
			t.Errorf("%q: %+v, %d proofs", auth, got, looked.looks)
		}
	}
	if got := ask(bearer(t, "bob")); got.Code != "" || looked.looks != 1 {
		t.Errorf("who is remembered: %+v, %d proofs", got, looked.looks)
	}
}

// unsure cannot verify any buyer yet.
type unsure struct{ Buyers }

func (unsure) FromHeader(dst, _ []byte, _ auth.Look) ([]byte, error) {
	return dst, auth.ErrKeysDue
}

func (unsure) Claimed(dst, _ []byte) ([]byte, auth.Proof) {
	return append(dst, "bob"...), auth.ProofDue
}

func TestSoldOut_UncheckedBuyerIsBusyNotSoldOut(t *testing.T) {
	d := newDoor(t)
	d.Buyers, d.Memory = unsure{}, memory{"bob": true}
	on := d.on(t)
	for _, soldOut := range []bool{false, true} {
		if soldOut {
			on.RaiseSoldOut(time.Now().Add(time.Hour))
		}
		got := d.Admit(on, &Request{Authorization: []byte("Bearer x"), Addr: addr, Body: []byte(`{}`)}, &Pass{})
		if got.Code != seckill.CodeBusy || got.Gate != GateBuyer || got.RetryAfter != time.Duration(auth.ErrKeysDue.RetryAfter)*time.Second {
			t.Errorf("sold out %t: %+v", soldOut, got)
		}
	}
	if got := d.Admit(on, &Request{Addr: addr}, &Pass{}); got.Code != seckill.CodeSoldOut {
		t.Errorf("nobody: %+v", got)
	}
}

func TestAdmit_KeyIsTokenIDElseHeader(t *testing.T) {
	for name, c := range map[string]struct {
		required bool
		token    func(d *door) string
		key      string
		code     seckill.Code
		want     string // of the pass; "id" for the token's
	}{
		"no token, no key":        {want: ""},
		"a header":                {key: "press-1", want: "press-1"},
		"a header of 65 bytes":    {key: fmt.Sprintf("%065d", 1), code: seckill.CodeBadRequest},
		"a header that is binary": {key: "\xff", code: seckill.CodeBadRequest},
		"a token":                 {token: func(d *door) string { return d.token(t, "bob", 7) }, want: "id"},
		"a token before a header": {
			required: true, key: "press-1", token: func(d *door) string { return d.token(t, "bob", 7) }, want: "id",
		},
		"a required token that is missing": {required: true, key: "press-1", code: seckill.CodeTokenInvalid},
		"another buyer's token":            {token: func(d *door) string { return d.token(t, "eve", 7) }, code: seckill.CodeTokenInvalid},
		"another product's token":          {token: func(d *door) string { return d.token(t, "bob", 8) }, code: seckill.CodeTokenInvalid},
		"a token that is none":             {token: func(*door) string { return "none" }, code: seckill.CodeTokenInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			d.TokenRequired = c.required
			token, body, want := "", `{}`, c.want
			if c.token != nil {
				token = c.token(d)
				body = fmt.Sprintf(`{"token":%q}`, token)
			}
			if want == "id" {
				id, err := d.Tokens.Verify([]byte(token), []byte("bob"), 7, d.Clock.Now())
				must(t, err)
				want = id.String()
			}
			var pass Pass
			got := d.Admit(d.on(t), &Request{Authorization: bearer(t, "bob"), Addr: addr, Key: []byte(c.key), Body: []byte(body)}, &pass)
			if got.Code != c.code || c.code == "" && pass.Key != want || c.code != "" && (got.Gate != GateToken || got.Detail == "") {
				t.Errorf("refusal %+v, key %q, want %q %q", got, pass.Key, c.code, want)
			}
		})
	}
}

func TestAdmit_RateLimitHasRetryAfter(t *testing.T) {
	d := newDoor(t)
	var err error
	d.ByBuyer, err = New(Options{PerSecond: 0.1, Burst: 2})
	must(t, err)
	on := d.on(t)
	for i, want := range []seckill.Code{"", "", seckill.CodeRateLimited} {
		var pass Pass
		got := d.Admit(on, &Request{Authorization: bearer(t, "bob"), Addr: addr, Body: []byte(`{}`)}, &pass)
		if got.Code != want || want != "" && (got.RetryAfter <= 0 || got.RetryAfter > 10*time.Second) {
			t.Errorf("request %d: %+v", i, got)
		}
	}
	var pass Pass
	if got := d.Admit(on, &Request{Authorization: bearer(t, "eve"), Addr: addr, Body: []byte(`{}`)}, &pass); got.Code != "" {
		t.Errorf("another buyer was refused: %+v", got)
	}
}

// A forged token must not spend the budget of the buyer whom it names, nor the
// budget of the product.
func TestAdmit_OnlyVerifiedBuyersSpendRates(t *testing.T) {
	d := newDoor(t)
	var err error
	d.ByBuyer, err = New(Options{PerSecond: 0.01, Burst: 1})
	must(t, err)
	d.ByProduct, err = New(Options{PerSecond: 0.01, Burst: 2})
	must(t, err)
	on := d.on(t)
	ask := func(auth []byte) Refusal {
		return d.Admit(on, &Request{Authorization: auth, Addr: addr, Body: []byte(`{}`)}, &Pass{})
	}
	bob := bearer(t, "bob")
	for _, forged := range [][]byte{nil, append(slices.Clone(bob), 'x'), []byte("Bearer none")} {
		for range 10 {
			if got := ask(forged); got.Gate != GateBuyer {
				t.Fatalf("%q was refused by %+v", forged, got)
			}
		}
	}
	for i, c := range []struct {
		buyer string
		gate  Gate
	}{{"bob", ""}, {"bob", GateBuyerRate}, {"bob", GateBuyerRate}, {"eve", ""}, {"ann", GateProductRate}} {
		if got := ask(bearer(t, c.buyer)); got.Gate != c.gate {
			t.Errorf("claim %d, of %s: %+v, want %q", i, c.buyer, got, c.gate)
		}
	}
}

// A used token stays valid, so that a repeat finds its order. Robots that repeat used
// tokens must not take the rate from buyers without an order.
func TestAdmit_RepeatsSpendABudgetOfTheirOwn(t *testing.T) {
	const burst = 10
	d := newDoor(t)
	var err error
	d.ByProduct, err = New(Options{PerSecond: 0.01, Burst: burst})
	must(t, err)
	d.ByHolder, err = New(Options{PerSecond: 0.01, Burst: burst})
	must(t, err)
	on := d.on(t)
	d.Memory = holds("robot")
	ask := func(buyer string) Refusal {
		return d.Admit(on, &Request{Authorization: bearer(t, buyer), Addr: addr, Body: []byte(`{}`)}, &Pass{})
	}
	for i := range 3 * burst {
		want := Gate("")
		if i >= burst {
			want = GateProductRate
		}
		if got := ask("robot"); got.Gate != want {
			t.Fatalf("repeat %d: refused by %+v, want %q", i, got, want)
		}
	}
	for i := range burst {
		if got := ask(fmt.Sprintf("buyer-%d", i)); got.Gate != "" {
			t.Errorf("first claim %d: refused by %+v", i, got)
		}
	}
}

// holds is a Memory of one buyer.
type holds string

func (h holds) MayHold(_ uint32, buyer []byte) bool { return string(buyer) == string(h) }

// 120 accounts without a token send one claim each; 30 buyers with a token come after
// them. The product's rate is just enough for those 30.
func TestAdmit_ClaimWithoutTokenSpendsNoProductRate(t *testing.T) {
	const robots, honest = 120, 30
	d := newDoor(t)
	d.TokenRequired = true
	var err error
	d.ByProduct, err = New(Options{PerSecond: 0.01, Burst: honest})
	must(t, err)
	on := d.on(t)
	ask := func(buyer, body string) Refusal {
		return d.Admit(on, &Request{Authorization: bearer(t, buyer), Addr: addr, Body: []byte(body)}, &Pass{})
	}
	stolen := fmt.Sprintf(`{"token":%q}`, d.token(t, "victim", 7))
	elsewhere := d.token(t, "robot-0", 8)
	for i := range robots {
		robot := fmt.Sprintf("robot-%d", i)
		for body, gate := range map[string]Gate{
			`{}`: GateToken, `{"token":"none"}`: GateToken, stolen: GateToken, fmt.Sprintf(`{"token":%q}`, elsewhere): GateToken,
			`[]`: GateBody, `{"quantity":9}`: GateBody,
		} {
			if got := ask(robot, body); got.Gate != gate {
				t.Fatalf("%s sends %s: refused by %+v, want gate %s", robot, body, got, gate)
			}
		}
	}
	for i := range honest + 1 {
		buyer, want := fmt.Sprintf("buyer-%d", i), Gate("")
		if i == honest {
			want = GateProductRate
		}
		if got := ask(buyer, fmt.Sprintf(`{"token":%q}`, d.token(t, buyer, 7))); got.Gate != want {
			t.Errorf("%s: refused by %+v, want %q", buyer, got, want)
		}
	}
}

// If the clock of Redis is set back or forward, sale windows follow it, logins do not.
func TestAdmit_JudgesTokensByTheInstancesClock(t *testing.T) {
	const off = time.Hour
	dated := func(issued, expires time.Time) []byte {
		text := base64.RawURLEncoding.EncodeToString
		signed := text([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + text(fmt.Appendf(nil, `{"sub":"bob","iat":%d,"exp":%d}`, issued.Unix(), expires.Unix()))
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(signed))
		return []byte("Bearer " + signed + "." + text(mac.Sum(nil)))
	}
	for _, ledger := range []time.Duration{-off, 0, off} {
		d := newDoor(t)
		log := slog.New(slog.DiscardHandler)
		d.Clock = sale.NewClock(func(context.Context) (time.Time, error) { return time.Now().Add(ledger), nil }, log)
		must(t, d.Clock.Sync(t.Context()))
		d.shelf.terms.StartsAt, d.shelf.terms.EndsAt = d.Clock.Now().Add(-time.Minute), d.Clock.Now().Add(time.Minute)
		now := time.Now()
		for _, c := range []struct {
			issued, expires time.Time
			want            seckill.Code
		}{
			{now, now.Add(off / 2), ""},
			{now.Add(-2 * off), now.Add(-off / 2), seckill.CodeUnauthenticated},
			{now.Add(off / 2), now.Add(3 * off), seckill.CodeUnauthenticated},
		} {
			var pass Pass
			auth := dated(c.issued, c.expires)
			if got := d.Admit(d.on(t), &Request{Authorization: auth, Addr: addr, Body: []byte(`{"quantity":1}`)}, &pass); got.Code != c.want {
				t.Errorf("ledger's clock %s off: a token of %s to %s got %+v, want %q", ledger, c.issued.Sub(now), c.expires.Sub(now), got, c.want)
			}
			if _, err := d.Prove(nil, auth, addr); seckill.CodeOf(err) != c.want && (err != nil || c.want != "") {
				t.Errorf("ledger's clock %s off: other routes got %v, want %q", ledger, err, c.want)
			}
		}
	}
}
