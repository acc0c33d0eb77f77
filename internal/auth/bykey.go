package auth

import "crypto/sha256"

// appendByKey is AppendBuyer for tokens that a public key has signed. Checking
// such a signature takes longer than the rest of the request, so verified tokens
// are remembered together with their key. The key is looked up on every call, so
// that a remembered token is refused once its key has left the set.
func (v *Verifier) appendByKey(dst, room, token []byte, t *parts, look Look) ([]byte, error) {
	key, err := v.findKey(t)
	if err != nil {
		return dst, err
	}
	var found entry
	now := look.Now.Unix()
	sum := sha256.Sum256(token)
	if v.seen.find(&sum, key.fingerprint, &found) {
		if err := v.checkDates(found.exp, found.notBefore, now); err != nil {
			return dst, err
		}
		return append(dst, found.buyer[:found.length]...), nil
	}
	c, err := v.readBuyer(room, t.payload)
	if err != nil {
		return dst, err
	}
	// Check the dates before the signature. Pages left open send many expired
	// tokens; they must not cost a signature check.
	dates := v.checkDates(c.exp, c.notBefore(), now)
	switch {
	case dates != nil && !look.DatesLast:
		return dst, dates
	case look.Spare:
		return dst, ErrSpared
	}
	if err := v.checkKey(key, t); err != nil {
		return dst, err
	}
	v.seen.keep(&sum, key.fingerprint, &c, now-v.leeway)
	if dates != nil {
		return dst, dates
	}
	return append(dst, c.subject...), nil
}

// findKey returns the key that the token names.
func (v *Verifier) findKey(t *parts) (*publicKey, error) {
	if v.keys == nil {
		return nil, ErrAlgorithm
	}
	return v.keys.find(t.alg, t.kid)
}

// checkKey verifies a signature with a public key.
func (v *Verifier) checkKey(key *publicKey, t *parts) error {
	v.keys.signatures.Add(1)
	err := t.verify(key.public)
	if err == ErrSignature {
		return ErrForged
	}
	return err
}
