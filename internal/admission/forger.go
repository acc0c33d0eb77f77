package admission

import (
	"net/netip"
	"time"

	"seckill"
	"seckill/internal/identity"
)

// ForgedPerSecond is how many tokens with a wrong signature an address may send
// a second before its tokens are not looked at for a moment. To refute one by a
// public key takes up to 100 µs, several times the rest of a request, and a
// raised sold-out flag asks for it before any rate limit: so many take a
// hundredth of a core. People never send one, but all of an office may, when the
// shop has changed its keys and everybody has to sign in again.
const ForgedPerSecond = 100

// ErrForger refuses to look at a token.
var ErrForger = &seckill.Error{
	Code: seckill.CodeRateLimited, Detail: "too many tokens with a wrong signature come from this address", RetryAfter: 1,
}

// Prove reads who asks and appends the buyer to dst, unless the address has
// sent too many forged tokens. All routes find out who asks by it.
func (d *Doorkeeper) Prove(dst, authorization []byte, addr netip.Addr, now time.Time) ([]byte, error) {
	if len(authorization) > 0 && d.ByForger.SpentAddr(addr, now) {
		return dst, ErrForger
	}
	buyer, err := d.Buyers.FromHeader(dst, authorization, now)
	if err == error(identity.ErrSignature) {
		d.ByForger.AllowAddr(addr, now)
	}
	return buyer, err
}

// stranger refuses who could not be told.
func (d *Doorkeeper) stranger(err error) Refusal {
	if err == error(ErrForger) {
		return limited(GateBuyer, d.ByForger, time.Second)
	}
	return refuse(GateBuyer, err)
}
