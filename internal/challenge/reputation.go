package challenge

import (
	"net/netip"
	"time"

	"seckill/internal/admission"
)

const (
	// DefaultCalmPerAddr is how many challenges an address may request in a minute
	// before its proofs of work get harder. A household, an office or a mobile
	// carrier's gateway shares an address: 1,000 shoppers behind one address, within
	// the page's 20 s, get 3 bits more. A phone then works for 1 to 1.5 s instead
	// of 0.12 to 0.18 s.
	DefaultCalmPerAddr = 120
	// MaxReputation bounds the bits for a bad reputation: 32 times the work. With
	// the usual 14 bits that is 19: 4 to 6 s of a phone that shares its address
	// with a farm. An address at the bound is calm again after half an hour.
	MaxReputation = 5
	// A wrong answer counts as wrongCost challenges. A challenge for an address
	// that sends forged logins counts as forgedCost. One account at its limits of 10
	// challenges and 30 answers a minute makes 10·forgedCost + 30·wrongCost = 100
	// of 120 a minute. So it cannot raise the price for its neighbours.
	wrongCost  = 2
	forgedCost = 4
)

// reputation counts recent challenges by address and by buyer, in fixed memory:
// two limiters that refuse nothing. Both counts decay at the calm rate. Each
// instance counts for itself.
type reputation struct {
	byAddr, byBuyer     *admission.Limiter
	addrCalm, buyerCalm float64
	forges              func(addr netip.Addr, now time.Time) bool
}

// newReputation takes the calm rates per minute; an addrCalm of 0 is off. A buyer is
// calm up to half of the allowed rate.
func newReputation(addrCalm, buyerPerMinute int, forges func(netip.Addr, time.Time) bool) (*reputation, error) {
	if forges == nil {
		forges = func(netip.Addr, time.Time) bool { return false }
	}
	buyerCalm := (buyerPerMinute + 1) / 2
	r := &reputation{addrCalm: float64(addrCalm), buyerCalm: float64(buyerCalm), forges: forges}
	var err error
	if r.byAddr, err = debts(addrCalm); err != nil {
		return nil, err
	}
	r.byBuyer, err = debts(buyerCalm)
	return r, err
}

// debts makes a limiter that counts up to MaxReputation.
func debts(calm int) (*admission.Limiter, error) {
	return admission.New(admission.Options{PerSecond: float64(calm) / 60, Burst: min(calm<<MaxReputation, admission.MaxBurst)})
}

// asked counts a challenge and returns its extra bits: one for each doubling above
// calm, by address or by buyer, whichever is more.
func (r *reputation) asked(addr netip.Addr, buyer string, now time.Time) (bits int) {
	cost := 1
	if r.forges(addr, now) {
		cost = forgedCost
	}
	bits = rise(r.byBuyer.Owe(admission.TextKey(buyer), 1, now), r.buyerCalm, MaxReputation)
	if isOneClient(addr) {
		bits = max(bits, rise(r.byAddr.Owe(admission.AddrKey(addr), cost, now), r.addrCalm, MaxReputation))
	}
	return bits
}

// isOneClient reports whether an address can have a reputation. Shoppers come from
// public addresses. A loopback or private address is nearly always a proxy that
// shop.trusted_proxies does not name. All shoppers behind it would have to work more.
func isOneClient(addr netip.Addr) bool {
	addr = addr.Unmap()
	return !addr.IsPrivate() && !addr.IsLoopback()
}

// wrong counts a wrong answer.
func (r *reputation) wrong(addr netip.Addr, buyer string, now time.Time) {
	if isOneClient(addr) {
		r.byAddr.Owe(admission.AddrKey(addr), wrongCost, now)
	}
	r.byBuyer.Owe(admission.TextKey(buyer), wrongCost, now)
}
