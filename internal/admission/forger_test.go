package admission

import (
	"net/netip"
	"testing"
	"time"

	"seckill"
	"seckill/internal/identity"
	"seckill/internal/ratelimit"
)

// counting counts the tokens that are looked at.
type counting struct {
	Buyers
	looks int
}

func (c *counting) FromHeader(dst, authorization []byte, now time.Time) ([]byte, error) {
	c.looks++
	return c.Buyers.FromHeader(dst, authorization, now)
}

// Signatures are costly to refute: after some forged ones an address is not
// worth more of them, whether or not the flag is up, which asks before any rate
// limit. Others, and tokens that are merely no longer good, are not concerned.
func TestAForgersTokensAreNotLookedAtForAMoment(t *testing.T) {
	const may = 5
	forged, err := identity.Sign([]byte("a forger's secret, which is another"), "bob", time.Now().Add(time.Hour))
	must(t, err)
	expired, err := identity.Sign(secret, "bob", time.Now().Add(-time.Hour))
	must(t, err)
	for name, soldOut := range map[string]bool{"on sale": false, "sold out": true} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			looked := &counting{Buyers: d.Buyers}
			d.Buyers, d.Memory = looked, memory{"bob": true}
			d.ByForger, err = ratelimit.New(ratelimit.Options{PerSecond: 0.01, Burst: may})
			must(t, err)
			on := d.on(t)
			if soldOut {
				on.MarkSoldOut(time.Now().Add(time.Hour))
			}
			ask := func(token string, from netip.Addr) Refusal {
				return d.Admit(on, &Request{Authorization: []byte("Bearer " + token), Addr: from, Body: []byte(`{}`)}, &Pass{})
			}
			for range 100 {
				ask(expired, addr)
			}
			looked.looks = 0
			for range 100 {
				ask(forged, addr)
			}
			// Of a refused claim the flag and the buyer's gate may look one time each.
			if looked.looks > 2*may {
				t.Errorf("%d forged tokens were looked at, want %d", looked.looks, may)
			}
			if got := ask(forged, addr); got.Code != seckill.CodeRateLimited || got.Gate != GateBuyer || got.Limit != d.ByForger {
				t.Errorf("a forger: %+v", got)
			}
			bob := string(bearer(t, "bob")[len("Bearer "):])
			if got := ask(bob, netip.MustParseAddr("192.0.2.8")); got != (Refusal{}) {
				t.Errorf("bob at another address: %+v", got)
			}
			if got := d.Admit(on, &Request{Addr: addr}, &Pass{}); soldOut != (got.Code == seckill.CodeSoldOut) || !soldOut && got.Code != seckill.CodeUnauthenticated {
				t.Errorf("one without a token at the forger's address: %+v", got)
			}
		})
	}
}
