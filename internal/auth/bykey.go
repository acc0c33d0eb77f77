package auth

import "crypto/sha256"

// appendByKey is AppendBuyer for what a public key has signed. To verify such
// a signature takes longer than all the rest of a request, so a token that was
// verified is remembered, and with it by which key: the key is looked up each
// time, and a token does not outlive it.
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
	// The dates come before the signature: an expired token, of which pages left
	// open send many, is refused without the costly step.
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

// findKey is the key that a token names.
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
