package admission

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"seckill"
	"seckill/internal/auth"

	"seckill/test/login"
)

// counting counts the checked tokens.
type counting struct {
	Buyers
	looks int
}

func (c *counting) FromHeader(dst, authorization []byte, look auth.Look) ([]byte, error) {
	c.looks++
	return c.Buyers.FromHeader(dst, authorization, look)
}

// shopLogin is a shop's login with a public key, and a forger with another key.
type shopLogin struct {
	keys        *auth.Keys
	shop, thief ed25519.PrivateKey
}

// keyed makes the door accept tokens of the login's key and of the secret.
func keyed(tb testing.TB, d *door) *shopLogin {
	tb.Helper()
	public, shop, err := ed25519.GenerateKey(rand.Reader)
	must(tb, err)
	_, thief, err := ed25519.GenerateKey(rand.Reader)
	must(tb, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	tb.Cleanup(server.Close)
	keys, err := auth.NewKeys(auth.KeysOptions{URL: server.URL, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	must(tb, err)
	must(tb, keys.Round(tb.Context()))
	d.Buyers, err = auth.OpenVerifier(auth.VerifierOptions{Secrets: [][]byte{secret}, Keys: keys})
	must(tb, err)
	return &shopLogin{keys, shop, thief}
}

// bearer makes a token of a buyer with this lifetime.
func (l *shopLogin) bearer(by ed25519.PrivateKey, kid, buyer string, life time.Duration) []byte {
	text := base64.RawURLEncoding.EncodeToString
	signed := text(fmt.Appendf(nil, `{"alg":"EdDSA","kid":%q}`, kid)) + "." + text(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, buyer, time.Now().Add(life).Unix()))
	return []byte("Bearer " + signed + "." + text(ed25519.Sign(by, []byte(signed))))
}

// Checking a forged signature is costly. After some forged tokens, the tokens of an
// address are not checked for a moment, with the flag up or down. Neighbours at the
// address are not affected if their tokens were verified before or are signed with
// the secret.
func TestForger_TokensAreNotCheckedForAMoment(t *testing.T) {
	const may = 5
	for name, soldOut := range map[string]bool{"on sale": false, "sold out": true} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			l := keyed(t, d)
			d.Memory = memory{"bob": true, "ann": true}
			var err error
			d.ByForger, err = New(Options{PerSecond: 0.01, Burst: may})
			must(t, err)
			on := d.on(t)
			if soldOut {
				on.RaiseSoldOut(time.Now().Add(time.Hour))
			}
			ask := func(auth []byte, from netip.Addr) Refusal {
				return d.Admit(on, &Request{Authorization: auth, Addr: from, Body: []byte(`{}`)}, &Pass{})
			}
			known, fresh := l.bearer(l.shop, "k", "bob", time.Hour), l.bearer(l.shop, "k", "bob", 2*time.Hour)
			if got := ask(known, addr); got != (Refusal{}) {
				t.Fatalf("bob: %+v", got)
			}
			for range 100 { // cheap to refute, or genuine
				ask(append(bearer(t, "bob"), 'x'), addr)
				ask(l.bearer(l.shop, "k", "bob", -time.Hour), addr)
			}
			if d.ByForger.Spent(AddrKey(addr), time.Now()) {
				t.Fatal("they count")
			}
			before := l.keys.Stats().Signatures
			for range 100 {
				ask(l.bearer(l.thief, "k", "bob", time.Hour), addr)
			}
			if n := l.keys.Stats().Signatures - before; n != may {
				t.Errorf("%d forged signatures were checked, want %d", n, may)
			}
			stranger := seckill.CodeUnauthenticated
			if soldOut {
				stranger = seckill.CodeSoldOut
			}
			for what, c := range map[string]struct {
				auth []byte
				from netip.Addr
				want seckill.Code
			}{
				"the forger":                       {l.bearer(l.thief, "k", "bob", time.Hour), addr, seckill.CodeRateLimited},
				"a token that is new":              {fresh, addr, seckill.CodeRateLimited},
				"a token that was verified":        {known, addr, ""},
				"a token of the secret":            {bearer(t, "ann"), addr, ""},
				"a new token from another address": {l.bearer(l.shop, "k", "ann", time.Hour), netip.MustParseAddr("192.0.2.8"), ""},
				"a forged token of the secret":     {append(bearer(t, "ann"), 'x'), addr, stranger},
				"nobody":                           {nil, addr, stranger},
			} {
				got := ask(c.auth, c.from)
				if got.Code != c.want || got.Code == seckill.CodeRateLimited && got.Gate != GateBuyer {
					t.Errorf("%s: %+v, want %q", what, got, c.want)
				}
			}
			if _, err := d.ReadCode(fresh[len("Bearer "):], addr); err != error(ErrForger) {
				t.Errorf("a login code: %v", err)
			}
		})
	}
}

func TestForger_LoginCodesCountToo(t *testing.T) {
	d := newDoor(t)
	l := keyed(t, d)
	d.ByForger = spent(t, func(*Limiter, time.Time) {})
	for i, want := range []error{auth.ErrForged, ErrForger, ErrForger} {
		if _, err := d.ReadCode(l.bearer(l.thief, "k", "bob", time.Minute)[len("Bearer "):], addr); err != want {
			t.Errorf("code %d: %v, want %v", i, err, want)
		}
	}
	if n := l.keys.Stats().Signatures; n != 1 {
		t.Errorf("%d signatures were checked", n)
	}
}

// While the flag is up, a forged token may name any buyer. The answer must not tell
// whether that buyer has bought.
func TestSoldOut_ForgedTokenDoesNotRevealOrders(t *testing.T) {
	for name, c := range map[string]struct {
		kid   string
		life  time.Duration
		spent bool
		want  seckill.Code
	}{
		"a wrong signature": {"k", time.Hour, false, seckill.CodeSoldOut},
		"an unknown key":    {"x", time.Hour, false, seckill.CodeSoldOut},
		"expired":           {"k", -time.Hour, false, seckill.CodeSoldOut},
		"a wrong signature from a forger's address": {"k", time.Hour, true, seckill.CodeRateLimited},
		"an unknown key from a forger's address":    {"x", time.Hour, true, seckill.CodeSoldOut},
		"expired from a forger's address":           {"k", -time.Hour, true, seckill.CodeRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			l := keyed(t, d)
			d.Memory = memory{"holder": true}
			if c.spent {
				d.ByForger = spent(t, func(l *Limiter, now time.Time) { l.Allow(AddrKey(addr), now) })
			}
			on := d.on(t)
			on.RaiseSoldOut(time.Now().Add(time.Hour))
			var answers []Refusal
			for _, buyer := range []string{"holder", "nobody"} {
				auth := l.bearer(l.thief, c.kid, buyer, c.life)
				answers = append(answers, d.Admit(on, &Request{Authorization: auth, Addr: addr, Body: []byte(`{}`)}, &Pass{}))
			}
			if answers[0] != answers[1] || answers[0].Code != c.want {
				t.Errorf("a holder %+v, another %+v, want %q", answers[0], answers[1], c.want)
			}
		})
	}
}

// A winner with an expired login gets `unauthenticated`: "sold out" would be wrong.
func TestSoldOut_HolderWithExpiredLoginMustSignIn(t *testing.T) {
	d := newDoor(t)
	l := keyed(t, d)
	d.Memory = memory{"bob": true}
	on := d.on(t)
	on.RaiseSoldOut(time.Now().Add(time.Hour))
	bySecret := func(buyer string) []byte {
		token, err := login.Token(secret, buyer, time.Now().Add(-time.Hour))
		must(t, err)
		return []byte("Bearer " + token)
	}
	for name, c := range map[string]struct {
		auth []byte
		want seckill.Code
	}{
		"by the secret":                {bySecret("bob"), seckill.CodeUnauthenticated},
		"by a key":                     {l.bearer(l.shop, "k", "bob", -time.Hour), seckill.CodeUnauthenticated},
		"who has not bought":           {bySecret("eve"), seckill.CodeSoldOut},
		"who has not bought, by a key": {l.bearer(l.shop, "k", "eve", -time.Hour), seckill.CodeSoldOut},
		"forged with another secret":   {append(bySecret("bob"), 'x'), seckill.CodeSoldOut},
		"forged with somebody else's":  {l.bearer(l.thief, "k", "bob", -time.Hour), seckill.CodeSoldOut},
	} {
		for range 2 { // checked, then remembered
			got := d.Admit(on, &Request{Authorization: c.auth, Addr: addr, Body: []byte(`{}`)}, &Pass{})
			if got.Code != c.want {
				t.Errorf("%s: %+v, want %q", name, got, c.want)
			}
		}
	}
}
