package auth

import (
	"fmt"
	"testing"
	"time"
)

func TestLeeway_BoundsDatesOfTokens(t *testing.T) {
	for _, leeway := range []time.Duration{0, 10 * time.Second, 5 * time.Minute} {
		v, err := OpenVerifier(VerifierOptions{Secrets: [][]byte{secret}, Leeway: leeway})
		if err != nil {
			t.Fatal(err)
		}
		for claims, want := range map[string]error{
			`"exp":` + at(time.Hour) + `,"iat":` + at(leeway):             nil,
			`"exp":` + at(time.Hour) + `,"iat":` + at(leeway+time.Second): ErrNotYetValid,
			`"exp":` + at(time.Hour) + `,"nbf":` + at(leeway+time.Second): ErrNotYetValid,
			`"exp":` + at(time.Second-leeway):                             nil,
			`"exp":` + at(-leeway):                                        ErrExpired,
		} {
			token := seal(t, secret, hs256, `{"sub":"bob",`+claims+`}`)
			if _, err := v.AppendBuyer(nil, []byte(token), Look{Now: now}); err != want {
				t.Errorf("leeway %s: %s: %v, want %v", leeway, claims, err, want)
			}
		}
	}
}

// Each instance has its own clock. The instance that takes a code may be one leeway
// ahead of the login, and another one a leeway behind.
func TestLoginCode_RememberedUntilNoInstanceAcceptsIt(t *testing.T) {
	const leeway = 30 * time.Second
	v, err := OpenVerifier(VerifierOptions{Secrets: [][]byte{secret}, Leeway: leeway})
	if err != nil {
		t.Fatal(err)
	}
	code := []byte(seal(t, secret, hs256, fmt.Sprintf(`{"sub":"bob","jti":"once","aud":"seckill-login","exp":%s}`, at(time.Minute))))
	taken, err := v.LoginCode(code, Look{Now: now.Add(leeway)}) // an instance that is ahead
	if err != nil {
		t.Fatal(err)
	}
	forgotten := now.Add(taken.Life)
	if _, err := v.LoginCode(code, Look{Now: forgotten.Add(-leeway)}); err != ErrExpired { // one that is behind
		t.Errorf("when it is forgotten, another instance answers %v, want %v", err, ErrExpired)
	}
	if early, err := v.LoginCode(code, Look{Now: forgotten.Add(-leeway - time.Second)}); err != nil {
		t.Errorf("it is remembered longer than needed: %+v, %v", early, err)
	}
}
