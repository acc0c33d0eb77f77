package auth

import "time"

const (
	// LoginAudience is the `aud` of a login code. A login code travels in a URL,
	// where others may read it. So it is never accepted as a buyer's token.
	LoginAudience = "seckill-login"
	// MaxCodeLife bounds the lifetime of a login code, and so the time for which
	// used codes must be remembered.
	MaxCodeLife = 2 * time.Minute
	// maxCodeID is the longest `jti` of a login code.
	maxCodeID = 64
)

// codeLeeways says how long a used code is remembered after its exp, in leeways.
// The instance that takes the code may be one leeway ahead of the login. Another
// instance may be one leeway behind, and accepts the code one leeway longer.
const codeLeeways = 3

// Code is a verified login code. It can be used once.
type Code struct {
	Buyer string
	ID    string // 1 to 64 bytes
	// Life is how long the ID must be remembered. After it no instance accepts
	// the code.
	Life time.Duration
}

// LoginCode verifies a login code: a token signed like a buyer's, with `aud`
// LoginAudience, a `jti`, and an exp within MaxCodeLife. The issuer must be the
// configured one. The configured audience does not apply: it is for buyers' tokens.
func (v *Verifier) LoginCode(token []byte, look Look) (Code, error) {
	var room [maxDecoded]byte
	t, err := take(room[:], token)
	if err != nil {
		return Code{}, err
	}
	if err := v.checkSignature(room[:], &t, look.Spare); err != nil {
		return Code{}, err
	}
	c, err := v.readPayload(room[:], t.payload)
	if err != nil {
		return Code{}, err
	}
	now := look.Now.Unix()
	if err := v.checkDates(c.exp, c.notBefore(), now); err != nil {
		return Code{}, err
	}
	switch {
	case !c.login:
		return Code{}, ErrNotLoginCode
	case len(c.id) == 0 || len(c.id) > maxCodeID:
		return Code{}, ErrCodeID
	case c.exp-now > int64(MaxCodeLife/time.Second)+v.leeway:
		return Code{}, ErrCodeLife
	}
	if err := checkBuyer(c.subject); err != nil {
		return Code{}, err
	}
	life := time.Duration(c.exp-now+codeLeeways*v.leeway) * time.Second
	return Code{Buyer: string(c.subject), ID: string(c.id), Life: life}, nil
}
