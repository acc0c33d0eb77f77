package auth

import "time"

const (
	// LoginAudience is the `aud` of a login code. A token with it never makes
	// its bearer a buyer: a code travels in an address, where others may read it.
	LoginAudience = "seckill-login"
	// MaxCodeLife bounds how far in the future a login code may expire, and with
	// it how long used codes have to be remembered.
	MaxCodeLife = 2 * time.Minute
	// maxCodeID is the longest `jti` of a login code.
	maxCodeID = 64
)

// codeLeeways is how many leeways after its exp a used code is remembered. The
// instance that takes it may be one leeway ahead of the login, and another one
// behind, which accepts the code for a leeway of its own.
const codeLeeways = 3

// Code is a verified login code. It is good once.
type Code struct {
	Buyer string
	ID    string // 1 to 64 bytes
	// Life is how long the ID has to be remembered: then no instance accepts the
	// code any more.
	Life time.Duration
}

// LoginCode verifies a login code: a token signed like a buyer's, with `aud`
// LoginAudience, a `jti`, and an end within MaxCodeLife. The configured issuer
// must have signed it; the configured audience is that of buyers' tokens.
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
