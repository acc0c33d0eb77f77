package admission

import (
	"net/netip"
	"time"

	"seckill/internal/auth"
)

// ForgedPerSecond is how many tokens with a wrong public-key signature an address may
// send per second. After that, its new tokens are not checked for a moment. A check
// takes up to 100 µs, several times the rest of a request, and with the sold-out flag
// up it comes before any rate limit. 100 checks take a hundredth of a core. People
// never send forged tokens, but a whole office may when the shop has changed its
// keys and all users must sign in again.
//
// Many people share an address. Tokens that were verified before are accepted
// whatever the neighbours send. So are tokens of the secret: a check takes a
// microsecond. Only a token that is new here must wait.
const ForgedPerSecond = 100

// ErrForger: the token's signature was not checked.
var ErrForger = auth.ErrSpared

// Prove authenticates the buyer and appends the id to dst. It refuses if a public-key
// signature must be checked and the address has sent too many forged tokens. All
// routes authenticate with it.
func (d *Doorkeeper) Prove(dst, authorization []byte, addr netip.Addr) ([]byte, error) {
	return d.prove(dst, authorization, addr, d.Clock.Now(), false)
}

// prove counts forged tokens by the ledger's clock, as all rates are. Only a token that
// needs a public key is looked at twice and costs a look at the limit.
func (d *Doorkeeper) prove(dst, authorization []byte, addr netip.Addr, now time.Time, datesLast bool) ([]byte, error) {
	look := auth.Look{Now: d.Clock.Local(), Spare: true, DatesLast: datesLast}
	buyer, err := d.Buyers.FromHeader(dst, authorization, look)
	if err != error(ErrForger) || d.ByForger.Spent(AddrKey(addr), now) {
		return buyer, err
	}
	look.Spare = false
	buyer, err = d.Buyers.FromHeader(dst, authorization, look)
	d.blame(addr, err, now)
	return buyer, err
}

// ReadCode reads a login code under the same limit, because it is signed like a token.
func (d *Doorkeeper) ReadCode(code []byte, addr netip.Addr) (auth.Code, error) {
	now := d.Clock.Now()
	read, err := d.Buyers.LoginCode(code, auth.Look{Now: d.Clock.Local(), Spare: d.ByForger.Spent(AddrKey(addr), now)})
	d.blame(addr, err, now)
	return read, err
}

// blame counts a forged token that needed a costly check.
func (d *Doorkeeper) blame(addr netip.Addr, err error, now time.Time) {
	if err == error(auth.ErrForged) {
		d.ByForger.Allow(AddrKey(addr), now)
	}
}
