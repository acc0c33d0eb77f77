package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"testing"
)

// The vectors are test cases 1, 2 and 6 of RFC 4231.
func TestSignIsHMACSHA256(t *testing.T) {
	for _, tc := range []struct{ name, secret, message, want string }{
		{"binary key", string(bytes.Repeat([]byte{0x0b}, 20)), "Hi There",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"short key", "Jefe", "what do ya want for nothing?",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{"key longer than a block", string(bytes.Repeat([]byte{0xaa}, 131)),
			"Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ring, err := NewRing([]byte(tc.secret))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // a state that has been used before signs the same
				if sum := ring.Sign([]byte(tc.message)); hex.EncodeToString(sum[:]) != tc.want {
					t.Fatalf("signed %x, want %s", sum, tc.want)
				}
			}
		})
	}
}

func TestRing_AcceptsRotatedSecretButNotRemoved(t *testing.T) {
	before, _ := NewRing([]byte("old"))
	during, _ := NewRing([]byte("new"), []byte("old"))
	after, _ := NewRing([]byte("new"))
	message := []byte("message")
	old, fresh := before.Sign(message), during.Sign(message)
	if !during.Verify(message, old[:]) || !during.Verify(message, fresh[:]) || !after.Verify(message, fresh[:]) {
		t.Error("a signature under a secret of the ring was refused")
	}
	if after.Verify(message, old[:]) {
		t.Error("a signature under a removed secret was accepted")
	}
}

// Two rings with the same secrets in another order find the same secret for a
// message, and sign with it alike.
func TestRing_FindAgreesForEveryOrderOfSecrets(t *testing.T) {
	one, _ := NewRing([]byte("new"), []byte("old"))
	other, _ := NewRing([]byte("old"), []byte("new"))
	message := []byte("message")
	for name, ring := range map[string]*Ring{"one": one, "other": other} {
		sum := ring.Sign(message)
		a, b := one.Find(message, sum[:]), other.Find(message, sum[:])
		if a < 0 || b < 0 || a == b {
			t.Fatalf("%s signed: found as %d and %d", name, a, b)
		}
		if one.SignBy(a, []byte("more")) != other.SignBy(b, []byte("more")) {
			t.Errorf("%s signed: the rings do not agree", name)
		}
	}
	if stranger, _ := NewRing([]byte("third")); stranger.Find(message, make([]byte, Size)) != -1 {
		t.Error("a stranger's signature was found")
	}
}

func TestDeriveKey_DiffersByUseAndFromSecret(t *testing.T) {
	secret := []byte("secret")
	a, b := DeriveKey(secret, "a"), DeriveKey(secret, "b")
	if bytes.Equal(a, b) || bytes.Equal(a, secret) || !bytes.Equal(a, DeriveKey(secret, "a")) || len(a) != Size {
		t.Errorf("derived %x and %x", a, b)
	}
}

func TestVerifyRefusesEveryChange(t *testing.T) {
	ring, _ := NewRing([]byte("secret"))
	message := []byte("message")
	sum := ring.Sign(message)
	for i := range sum {
		forged := sum
		forged[i] ^= 1
		if ring.Verify(message, forged[:]) {
			t.Fatalf("accepted a signature with byte %d changed", i)
		}
	}
	if ring.Verify(message, sum[:Size-1]) || ring.Verify(message, nil) || ring.Verify([]byte("massage"), sum[:]) {
		t.Error("accepted a signature that is cut, missing or of another message")
	}
}

func TestNewRing_RefusesUnusableSecrets(t *testing.T) {
	for name, secrets := range map[string][][]byte{
		"none": nil, "empty": {nil}, "second empty": {[]byte("a"), {}},
		"too many": make([][]byte, MaxSecrets+1),
	} {
		if _, err := NewRing(secrets...); !errors.Is(err, ErrSecrets) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestRing_CopiesTheSecret(t *testing.T) {
	secret := []byte("secret")
	ring, _ := NewRing(secret)
	clear(secret)
	mac := hmac.New(sha256.New, []byte("secret"))
	sum := ring.Sign(nil)
	if !bytes.Equal(sum[:], mac.Sum(nil)) {
		t.Error("clearing the caller's secret changed the ring's")
	}
}

func TestRing_ConcurrentSigningDoesNotMixMessages(t *testing.T) {
	ring, _ := NewRing([]byte("secret"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			message := bytes.Repeat([]byte{byte(i)}, 100+i)
			want := ring.Sign(message)
			for range 500 {
				if ring.Sign(message) != want {
					t.Errorf("message %d was signed differently", i)
					return
				}
			}
		})
	}
	wg.Wait()
}
