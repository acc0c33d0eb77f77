package purchasetoken

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"seckill"
)

var now = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

const (
	buyer   = "buyer-0000042"
	product = uint32(7)
)

func open(t testing.TB, secrets ...string) *Mint {
	t.Helper()
	o := Options{Random: rand.Reader}
	for _, secret := range secrets {
		o.Secrets = append(o.Secrets, []byte(secret))
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// issue goes the way of a buyer: a challenge, then a token.
func issue(t testing.TB, m *Mint, buyer string) string {
	t.Helper()
	challenge, err := m.Challenge(buyer, product, now)
	if err != nil {
		t.Fatal(err)
	}
	token, expires, err := m.Redeem(challenge.ID, buyer, product, now)
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Add(DefaultTTL); !expires.Equal(want) {
		t.Fatalf("expires %v, want %v", expires, want)
	}
	return token
}

func TestATokenIsReadWithTheSameIDEveryTime(t *testing.T) {
	m := open(t, "secret")
	token := issue(t, m, buyer)
	first, err := m.Verify(token, buyer, product, now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.VerifyBytes([]byte(token), buyer, product, now.Add(time.Minute))
	if err != nil || again != first {
		t.Fatalf("read again: %v, %v, want %v", again, err, first)
	}
	if key := first.String(); len(key) != KeyLen || seckill.CheckKey(key) != nil {
		t.Errorf("%q is no idempotency key", key)
	}
	other, err := m.Verify(issue(t, m, buyer), buyer, product, now)
	if err != nil || other == first {
		t.Errorf("a second token has id %v, %v; ids must differ", other, err)
	}
}

func TestAChallengeOfKindNoneSaysSoOnTheWire(t *testing.T) {
	challenge, err := open(t, "secret").Challenge(buyer, product, now)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(challenge)
	if want := `{"challenge_id":"` + challenge.ID + `","type":"none"}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}

func TestATokenServesItsBuyerAndProductUntilItExpires(t *testing.T) {
	m := open(t, "secret")
	token := issue(t, m, buyer)
	challenge, _ := m.Challenge(buyer, product, now)
	for _, tc := range []struct {
		name, token, buyer string
		product            uint32
		at                 time.Time
		want               error
	}{
		{"good", token, buyer, product, now, nil},
		{"last instant", token, buyer, product, now.Add(DefaultTTL - time.Millisecond), nil},
		{"expired", token, buyer, product, now.Add(DefaultTTL), ErrExpired},
		{"another buyer", token, "buyer-0000043", product, now, ErrForeign},
		{"no buyer", token, "", product, now, ErrForeign},
		{"a buyer too long", token, strings.Repeat("b", seckill.MaxBuyerBytes+1), product, now, ErrMalformed},
		{"another product", token, buyer, product + 1, now, ErrForeign},
		{"a challenge is no token", challenge.ID, buyer, product, now, ErrMalformed},
		{"empty", "", buyer, product, now, ErrMalformed},
		{"cut", token[:len(token)-1], buyer, product, now, ErrMalformed},
		{"longer", token + "A", buyer, product, now, ErrMalformed},
		{"line break inside", token[:10] + "\n" + token[11:], buyer, product, now, ErrMalformed},
		{"standard base64", "+/" + token[2:], buyer, product, now, ErrMalformed},
		{"huge", strings.Repeat("A", 1<<20), buyer, product, now, ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := m.Verify(tc.token, tc.buyer, tc.product, tc.at)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if err != nil && seckill.CodeOf(err) != seckill.CodeTokenInvalid {
				t.Errorf("code %s", seckill.CodeOf(err))
			}
		})
	}
}

func TestAChallengeServesItsBuyerAndProductUntilItExpires(t *testing.T) {
	m := open(t, "secret")
	challenge, _ := m.Challenge(buyer, product, now)
	for _, tc := range []struct {
		name, id, buyer string
		product         uint32
		at              time.Time
		want            error
	}{
		{"good", challenge.ID, buyer, product, now, nil},
		{"again", challenge.ID, buyer, product, now.Add(time.Minute), nil},
		{"expired", challenge.ID, buyer, product, now.Add(DefaultChallengeTTL), ErrExpired},
		{"another buyer", challenge.ID, "eve", product, now, ErrForeign},
		{"another product", challenge.ID, buyer, 8, now, ErrForeign},
		{"a token is no challenge", issue(t, m, buyer), buyer, product, now, ErrMalformed},
		{"nonsense", "nonsense", buyer, product, now, ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, _, err := m.Redeem(tc.id, tc.buyer, tc.product, tc.at); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

func TestEveryChangedByteIsRefused(t *testing.T) {
	m := open(t, "secret")
	token := issue(t, m, buyer)
	sealed, _ := base64.RawURLEncoding.DecodeString(token)
	for i := range sealed {
		for _, flip := range []byte{1, 0x80} {
			sealed[i] ^= flip
			if _, err := m.Verify(base64.RawURLEncoding.EncodeToString(sealed), buyer, product, now); err == nil {
				t.Fatalf("accepted with byte %d changed", i)
			}
			sealed[i] ^= flip
		}
	}
}

// Buyer and product stand next to each other in what is signed: no shift of a
// byte from one to the other may read alike.
func TestBuyersWithControlledBytesDoNotCollide(t *testing.T) {
	m := open(t, "secret")
	token := issue(t, m, "ab")
	if _, err := m.Verify(token, "b", product<<8|'a', now); !errors.Is(err, ErrForeign) {
		t.Errorf("error %v", err)
	}
}

func TestASecretCanBeRotated(t *testing.T) {
	old := issue(t, open(t, "old"), buyer)
	if _, err := open(t, "new", "old").Verify(old, buyer, product, now); err != nil {
		t.Errorf("during the rotation: %v", err)
	}
	if _, err := open(t, "new").Verify(old, buyer, product, now); !errors.Is(err, ErrForeign) {
		t.Errorf("after the rotation: %v", err)
	}
}

func TestNothingIsMadeWithoutRandomnessOrABuyer(t *testing.T) {
	m, err := New(Options{Secrets: [][]byte{[]byte("s")}, Random: iotest.ErrReader(errors.New("dry"))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Challenge(buyer, product, now); err == nil || seckill.CodeOf(err) != seckill.CodeBusy {
		t.Errorf("without randomness: %v", err)
	}
	if _, err := open(t, "s").Challenge("", product, now); seckill.CodeOf(err) != seckill.CodeBadRequest {
		t.Errorf("without a buyer: %v", err)
	}
}

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	good := [][]byte{[]byte("secret")}
	for name, o := range map[string]Options{
		"no secret":          {Random: rand.Reader},
		"no randomness":      {Secrets: good},
		"a life too short":   {Secrets: good, Random: rand.Reader, TTL: time.Millisecond},
		"a life too long":    {Secrets: good, Random: rand.Reader, TTL: MaxTTL + 1},
		"challenge too long": {Secrets: good, Random: rand.Reader, ChallengeTTL: MaxTTL + 1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestVerifyAllocatesNothingButTheKey(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	m := open(t, "secret", "older")
	token := issue(t, m, buyer)
	foreign := issue(t, open(t, "other"), buyer)
	raw := []byte(token)
	for _, tc := range []struct {
		name   string
		budget float64
		run    func()
	}{
		{"verify", 0, func() { _, _ = m.Verify(token, buyer, product, now) }},
		{"verify bytes", 0, func() { _, _ = m.VerifyBytes(raw, buyer, product, now) }},
		{"refuse a forgery", 0, func() { _, _ = m.Verify(foreign, buyer, product, now) }},
		{"refuse nonsense", 0, func() { _, _ = m.Verify("nonsense", buyer, product, now) }},
		{"verify and make the key", 1, func() {
			id, _ := m.Verify(token, buyer, product, now)
			sink = id.String()
		}},
	} {
		if allocs := testing.AllocsPerRun(1000, tc.run); allocs > tc.budget {
			t.Errorf("%s: %v allocations, budget %v", tc.name, allocs, tc.budget)
		}
	}
}

var sink string

func FuzzVerify(f *testing.F) {
	// Fuzzing runs in several processes, which must agree on the one good token.
	m, err := New(Options{Secrets: [][]byte{[]byte("secret")}, Random: strings.NewReader(strings.Repeat("r", 2*len(ID{})))})
	if err != nil {
		f.Fatal(err)
	}
	token := issue(f, m, buyer)
	f.Add(token, buyer, product)
	f.Add(token, "eve", product)
	f.Add(strings.Repeat("A", textLen), buyer, product)
	f.Add("", "", uint32(0))
	f.Fuzz(func(t *testing.T, text, who string, what uint32) {
		id, err := m.Verify(text, who, what, now)
		if err == nil && (text != token || who != buyer || what != product) {
			t.Fatalf("accepted %q for %q and %d", text, who, what)
		}
		if err != nil && (id != ID{} || seckill.CodeOf(err) != seckill.CodeTokenInvalid) {
			t.Fatalf("refused with id %v and code %s", id, seckill.CodeOf(err))
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	m := open(b, "secret")
	token := issue(b, m, buyer)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Verify(token, buyer, product, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedeem(b *testing.B) {
	m := open(b, "secret")
	challenge, _ := m.Challenge(buyer, product, now)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := m.Redeem(challenge.ID, buyer, product, now); err != nil {
			b.Fatal(err)
		}
	}
}
