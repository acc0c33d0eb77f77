package admission

import (
	"net/netip"
	"time"

	"seckill/internal/auth"
)

// ForgedPerSecond is how many tokens that a public key has refuted an address may
// send a second before it is spared further such checks for a moment. One takes
// up to 100 µs, several times the rest of a request, and a raised sold-out flag
// asks for it before any rate limit: so many take a hundredth of a core. People
// never send one, but all of an office may, when the shop has changed its keys
// and everybody has to sign in again.
//
// Many people share an address. Whose token was verified here before, or is
// signed with the secret, which is refuted in a microsecond, is let in whatever
// their neighbours send; only a token that is new here has to wait.
const ForgedPerSecond = 100

// ErrForger refuses to check a token's signature.
var ErrForger = auth.ErrSpared

// Prove reads who asks and appends the buyer to dst, unless that takes the check
// of a public key's signature and the address has sent too many forged ones. All
// routes find out who asks by it.
func (d *Doorkeeper) Prove(dst, authorization []byte, addr netip.Addr) ([]byte, error) {
	return d.prove(dst, authorization, addr, d.Clock.Now(), false)
}

// prove counts forgeries by the ledger's clock, now, like every rate. Only a token
// that a public key has to check is looked at twice, and costs a look at the limit.
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

// ReadCode reads a login code under the same limit: it is signed like a token.
func (d *Doorkeeper) ReadCode(code []byte, addr netip.Addr) (auth.Code, error) {
	now := d.Clock.Now()
	read, err := d.Buyers.LoginCode(code, auth.Look{Now: d.Clock.Local(), Spare: d.ByForger.Spent(AddrKey(addr), now)})
	d.blame(addr, err, now)
	return read, err
}

// blame counts a forgery that was costly to find out.
func (d *Doorkeeper) blame(addr netip.Addr, err error, now time.Time) {
	if err == error(auth.ErrForged) {
		d.ByForger.Allow(AddrKey(addr), now)
	}
}
