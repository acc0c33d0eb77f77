package auth

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"seckill"
)

var mintNow = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

const (
	buyer   = "buyer-0000042"
	product = uint32(7)
)

const life = 2 * time.Minute

func openMint(t testing.TB, secrets ...string) *Mint {
	t.Helper()
	var raw [][]byte
	for _, secret := range secrets {
		raw = append(raw, []byte(secret))
	}
	m, err := NewMint(raw...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// issue makes a token with the id that all tests share.
func issue(t testing.TB, m *Mint, buyer string) string {
	t.Helper()
	token, err := m.Issue(id, buyer, product, mintNow.Add(life))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

var id = TokenID{1, 2, 3, 15: 16}

func TestMint_VerifyReturnsSameID(t *testing.T) {
	m := openMint(t, "secret")
	token := issue(t, m, buyer)
	first, err := m.Verify([]byte(token), []byte(buyer), product, mintNow)
	if err != nil || first != id {
		t.Fatalf("read %v, %v, want %v", first, err, id)
	}
	again, err := m.Verify([]byte(token), []byte(buyer), product, mintNow.Add(time.Minute))
	if err != nil || again != id {
		t.Fatalf("read again: %v, %v, want %v", again, err, id)
	}
	if key := first.String(); len(key) != KeyLen || seckill.CheckKey(key) != nil {
		t.Errorf("%q is no idempotency key", key)
	}
}

func TestMint_TokenIsForOneBuyerAndProductUntilExpiry(t *testing.T) {
	m := openMint(t, "secret")
	token := issue(t, m, buyer)
	for _, tc := range []struct {
		name, token, buyer string
		product            uint32
		at                 time.Time
		want               error
	}{
		{"good", token, buyer, product, mintNow, nil},
		{"last instant", token, buyer, product, mintNow.Add(life - time.Millisecond), nil},
		{"expired", token, buyer, product, mintNow.Add(life), ErrTokenExpired},
		{"another buyer", token, "buyer-0000043", product, mintNow, ErrForeign},
		{"no buyer", token, "", product, mintNow, ErrForeign},
		{"a buyer too long", token, strings.Repeat("b", seckill.MaxBuyerBytes+1), product, mintNow, ErrTokenMalformed},
		{"another product", token, buyer, product + 1, mintNow, ErrForeign},
		{"empty", "", buyer, product, mintNow, ErrTokenMalformed},
		{"cut", token[:len(token)-1], buyer, product, mintNow, ErrTokenMalformed},
		{"longer", token + "A", buyer, product, mintNow, ErrTokenMalformed},
		{"line break inside", token[:10] + "\n" + token[11:], buyer, product, mintNow, ErrTokenMalformed},
		{"standard base64", "+/" + token[2:], buyer, product, mintNow, ErrTokenMalformed},
		{"huge", strings.Repeat("A", 1<<20), buyer, product, mintNow, ErrTokenMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := m.Verify([]byte(tc.token), []byte(tc.buyer), tc.product, tc.at)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if err != nil && seckill.CodeOf(err) != seckill.CodeTokenInvalid {
				t.Errorf("code %s", seckill.CodeOf(err))
			}
		})
	}
}

func TestMint_RefusesEveryChangedByte(t *testing.T) {
	m := openMint(t, "secret")
	token := issue(t, m, buyer)
	sealed, _ := base64.RawURLEncoding.DecodeString(token)
	for i := range sealed {
		for _, flip := range []byte{1, 0x80} {
			sealed[i] ^= flip
			if _, err := m.Verify([]byte(base64.RawURLEncoding.EncodeToString(sealed)), []byte(buyer), product, mintNow); err == nil {
				t.Fatalf("accepted with byte %d changed", i)
			}
			sealed[i] ^= flip
		}
	}
}

// Buyer and product are adjacent in the signed message. Moving a byte from one to
// the other must not give the same message.
func TestMint_BuyerAndProductDoNotCollide(t *testing.T) {
	m := openMint(t, "secret")
	token := issue(t, m, "ab")
	if _, err := m.Verify([]byte(token), []byte("b"), product<<8|'a', mintNow); !errors.Is(err, ErrForeign) {
		t.Errorf("error %v", err)
	}
}

func TestMint_SecretCanBeRotated(t *testing.T) {
	old := issue(t, openMint(t, "old"), buyer)
	if _, err := openMint(t, "new", "old").Verify([]byte(old), []byte(buyer), product, mintNow); err != nil {
		t.Errorf("during the rotation: %v", err)
	}
	if _, err := openMint(t, "new").Verify([]byte(old), []byte(buyer), product, mintNow); !errors.Is(err, ErrForeign) {
		t.Errorf("after the rotation: %v", err)
	}
}

// Instances get a new secret one after the other. Meanwhile each must accept the
// tokens that the others sign.
func TestMint_InstancesAgreeDuringRotation(t *testing.T) {
	a, b := openMint(t, "new", "old"), openMint(t, "old", "new")
	for name, token := range map[string]string{"the one ahead": issue(t, a, buyer), "the one behind": issue(t, b, buyer)} {
		for _, reader := range []*Mint{a, b} {
			if got, err := reader.Verify([]byte(token), []byte(buyer), product, mintNow); err != nil || got != id {
				t.Errorf("signed by %s: %v, %v", name, got, err)
			}
		}
	}
}

func TestMint_NeedsSecretAndBuyer(t *testing.T) {
	if _, err := NewMint(); err == nil {
		t.Error("made a mint without a secret")
	}
	if _, err := openMint(t, "s").Issue(id, "", product, mintNow); seckill.CodeOf(err) != seckill.CodeBadRequest {
		t.Errorf("without a buyer: %v", err)
	}
}

func TestMint_VerifyAllocatesNothingButTheKey(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates itself; budgets are measured without it")
		return
	}
	m := openMint(t, "secret", "older")
	raw, rawBuyer := []byte(issue(t, m, buyer)), []byte(buyer)
	foreign, nonsense := []byte(issue(t, openMint(t, "other"), buyer)), []byte("nonsense")
	for _, tc := range []struct {
		name   string
		budget float64
		run    func()
	}{
		{"verify", 0, func() { _, _ = m.Verify(raw, rawBuyer, product, mintNow) }},
		{"refuse a forgery", 0, func() { _, _ = m.Verify(foreign, rawBuyer, product, mintNow) }},
		{"refuse nonsense", 0, func() { _, _ = m.Verify(nonsense, rawBuyer, product, mintNow) }},
		{"verify and make the key", 1, func() {
			read, _ := m.Verify(raw, rawBuyer, product, mintNow)
			sink = read.String()
		}},
	} {
		if allocs := testing.AllocsPerRun(1000, tc.run); allocs > tc.budget {
			t.Errorf("%s: %v allocations, budget %v", tc.name, allocs, tc.budget)
		}
	}
}

var sink string

func FuzzVerify(f *testing.F) {
	m := openMint(f, "secret")
	token := issue(f, m, buyer)
	f.Add(token, buyer, product)
	f.Add(token, "eve", product)
	f.Add(strings.Repeat("A", textLen), buyer, product)
	f.Add("", "", uint32(0))
	f.Fuzz(func(t *testing.T, text, who string, what uint32) {
		read, err := m.Verify([]byte(text), []byte(who), what, mintNow)
		if err == nil && (text != token || who != buyer || what != product) {
			t.Fatalf("accepted %q for %q and %d", text, who, what)
		}
		if err != nil && (read != TokenID{} || seckill.CodeOf(err) != seckill.CodeTokenInvalid) {
			t.Fatalf("refused with id %v and code %s", read, seckill.CodeOf(err))
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	m := openMint(b, "secret")
	token := issue(b, m, buyer)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Verify([]byte(token), []byte(buyer), product, mintNow); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIssue(b *testing.B) {
	m := openMint(b, "secret")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Issue(id, buyer, product, mintNow); err != nil {
			b.Fatal(err)
		}
	}
}
