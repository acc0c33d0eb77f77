package auth

// Proof is what it would take to prove whom a token names.
type Proof uint8

// The proofs.
const (
	// ProofNone is of a token that can never prove anybody.
	ProofNone Proof = iota
	// ProofSecret is cheap: an HMAC.
	ProofSecret
	// ProofKey takes a public key that is known, unless the token was verified
	// before.
	ProofKey
	// ProofDue takes a public key that may be known soon.
	ProofDue
)

// Claimed appends to dst the buyer whom the value of an Authorization header
// names, without a look at the signature. Where the answer is no for whoever it
// may be, that saves the proof, which is most of the work. Whatever FromHeader
// would accept is read here as it is there; the proof depends on the token's
// header alone, and not on whom it names.
func (v *Verifier) Claimed(dst, authorization []byte) ([]byte, Proof) {
	token, ok := bearer(authorization)
	if !ok || len(token) > MaxTokenBytes {
		return dst, ProofNone
	}
	if len(token) <= usualTokenBytes {
		var room [usualDecoded]byte
		return v.claimed(dst, room[:], token)
	}
	var room [maxDecoded]byte
	return v.claimed(dst, room[:], token)
}

func (v *Verifier) claimed(dst, room, token []byte) ([]byte, Proof) {
	t, err := take(room, token)
	if err != nil {
		return dst, ProofNone
	}
	proof := v.proof(&t) // before the payload takes the room of the key's name
	if proof == ProofNone {
		return dst, ProofNone
	}
	decoded, ok := decode(room, t.payload)
	if !ok {
		return dst, ProofNone
	}
	c, err := readClaims(decoded, v.audience)
	if err != nil || checkBuyer(c.subject) != nil {
		return dst, ProofNone
	}
	return append(dst, c.subject...), proof
}

// proof is what the token asks for.
func (v *Verifier) proof(t *parts) Proof {
	if t.alg.bySecret() {
		if v.ring == nil {
			return ProofNone
		}
		return ProofSecret
	}
	switch _, err := v.findKey(t); err {
	case nil:
		return ProofKey
	case error(ErrKeysDue):
		return ProofDue
	}
	return ProofNone
}
