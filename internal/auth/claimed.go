package auth

// Proof says what is needed to verify the buyer of a token.
type Proof uint8

// The kinds of proof.
const (
	// ProofNone: the token can never be accepted.
	ProofNone Proof = iota
	// ProofSecret: an HMAC, which is cheap to check.
	ProofSecret
	// ProofKey: a known public key must check the signature, unless the token
	// was verified before.
	ProofKey
	// ProofDue: the public key is unknown, but the next fetch may bring it.
	ProofDue
)

// Claimed reads the buyer from an Authorization header without a check of the
// signature, and appends it to dst. If the answer is "no" for every buyer, the
// caller saves the proof, which is most of the work. Claimed reads every token
// that FromHeader accepts, and finds the same buyer. The proof depends on the
// token's header only, not on the buyer.
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
	proof := v.proof(&t) // before decoding the payload overwrites the key's name in room
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

// proof returns the proof that the token needs.
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
