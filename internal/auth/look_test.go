package auth

import (
	"testing"
	"time"
)

// Spare still accepts verified tokens and tokens of a secret. With DatesLast, only
// a genuine token gets an error about its dates.
func TestLook_SpareAndDatesLast(t *testing.T) {
	for _, alg := range publicAlgorithms {
		p, thief := key(alg, "k"), otherKey(alg, "k")
		e := with(t, setOf(p))
		expired := `{"sub":"bob","exp":` + at(-time.Hour) + `}`
		for i, c := range []struct {
			token string
			look  Look
			want  error
		}{
			{string(p.token()), Look{Spare: true}, ErrSpared},
			{string(thief.token()), Look{Spare: true}, ErrSpared},
			{string(key(alg, "other").token()), Look{Spare: true}, ErrKey},
			{seal(t, secret, hs256, `{"sub":"bob","exp":`+at(time.Hour)+`}`), Look{Spare: true}, nil},
			{string(thief.token()), Look{}, ErrForged},
			{p.seal(p.header(), expired), Look{}, ErrExpired},
			{thief.seal(p.header(), expired), Look{}, ErrExpired},
			{thief.seal(p.header(), expired), Look{DatesLast: true}, ErrForged},
			{thief.seal(p.header(), expired), Look{DatesLast: true, Spare: true}, ErrSpared},
			{p.seal(p.header(), expired), Look{DatesLast: true}, ErrExpired},
			{p.seal(p.header(), `{"sub":"bob","nbf":`+at(time.Hour)+`,"exp":`+at(2*time.Hour)+`}`), Look{DatesLast: true}, ErrNotYetValid},
		} {
			c.look.Now = now
			if _, err := e.AppendBuyer(nil, []byte(c.token), c.look); err != c.want {
				t.Errorf("%s, look %d: %v, want %v", alg, i, err, c.want)
			}
		}
		again := p.token()
		e.expect(t, alg, again, nil)
		if buyer, err := e.AppendBuyer(nil, again, Look{Now: now, Spare: true}); err != nil || string(buyer) != "bob" {
			t.Errorf("%s, verified before: %q, %v", alg, buyer, err)
		}
		code := p.seal(p.header(), `{"sub":"bob","aud":"seckill-login","jti":"1","exp":`+at(time.Minute)+`}`)
		if _, err := e.LoginCode([]byte(code), Look{Now: now, Spare: true}); err != ErrSpared {
			t.Errorf("%s, a login code: %v", alg, err)
		}
		e.pass(KeysSpacing) // a set of this age cannot refuse an unknown key
		for want, token := range map[Proof]string{ProofKey: string(thief.token()), ProofDue: string(key(alg, "another").token()), ProofNone: p.seal(`{"alg":"none"}`, expired)} {
			if _, proof := e.Claimed(nil, []byte("Bearer "+token)); proof != want {
				t.Errorf("%s: proof %d, want %d", alg, proof, want)
			}
		}
	}
}
