package challenge

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var (
	farm   = netip.MustParseAddr("192.0.2.1")
	honest = netip.MustParseAddr("198.51.100.1")
)

// raises counts proofs of work that were made harder.
type raises struct {
	unmeasured
	count *int
}

func (r raises) Raised() { *r.count++ }

func (d *testIssuer) askFrom(t testing.TB, addr netip.Addr, buyer string, at time.Time) Challenge {
	t.Helper()
	c, err := d.Pose(t.Context(), Ask{Product: product(1), Buyer: buyer, Addr: addr, Kind: Pow}, at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A farm of 1,000 accounts at one address competes with honest buyers, who have
// one address each. The farm pays for its own load; the honest buyers do not.
func TestReputation_FarmAtOneAddressPaysMore(t *testing.T) {
	const base, calm = 8, 50
	for _, kind := range []Kind{Pow, Image} {
		t.Run(string(kind), func(t *testing.T) {
			raised := 0
			d := open(t, kind, func(o *Options) {
				o.PowBits, o.CalmPerSecond, o.CalmPerAddr = base, calm, 10
				o.Meter = raises{count: &raised}
			})
			bits := base
			if kind == Image {
				bits += AlternativeBits
			}
			var last Challenge
			for n := range 1000 { // all within one second
				last = d.askFrom(t, farm, fmt.Sprint("robot-", n), now)
			}
			if last.Difficulty != bits+MaxReputation {
				t.Errorf("the farm works on %d bits, want %d", last.Difficulty, bits+MaxReputation)
			}
			if raised < 900 {
				t.Errorf("%d raised prices are counted", raised)
			}
			addr := honest
			for n := range 20 {
				addr = addr.Next()
				if c := d.askFrom(t, addr, fmt.Sprint("person-", n), now); c.Difficulty != bits {
					t.Errorf("an honest buyer works on %d bits, want %d: the farm raised the price for all", c.Difficulty, bits)
				}
			}
			// A real crowd, with one address each, raises the price for everyone. The
			// farm still pays more.
			var person Challenge
			for n := range 4 * calm {
				addr = addr.Next()
				person = d.askFrom(t, addr, fmt.Sprint("crowd-", n), now)
			}
			robot := d.askFrom(t, farm, "robot-0", now)
			if person.Difficulty != bits+2 || robot.Difficulty != bits+2+MaxReputation {
				t.Errorf("at four times the calm rate a person works on %d bits, a robot on %d, want %d and %d",
					person.Difficulty, robot.Difficulty, bits+2, bits+2+MaxReputation)
			}
		})
	}
}

// A stock of cheap challenges cannot be collected slowly in advance: an address is
// remembered for longer than a challenge lives.
func TestReputation_StockOfChallengesGetsHarder(t *testing.T) {
	d := open(t, Pow, func(o *Options) { o.CalmPerAddr = 10 })
	cheap, at := 0, now
	for n := range 300 { // one a second, for as long as a challenge lives
		at = at.Add(TTL / 300)
		if d.askFrom(t, farm, fmt.Sprint("robot-", n), at).Difficulty == 8 {
			cheap++
		}
	}
	if most := 2*10 + 10*int(TTL/time.Minute); cheap > most {
		t.Errorf("%d challenges at the calm price, want at most %d", cheap, most)
	}
}

func TestReputation(t *testing.T) {
	const calm = 10 // of an address, and of a buyer
	for _, tc := range []struct {
		name  string
		do    func(t *testing.T, d *testIssuer)
		after time.Duration
		want  int // bits of one who asks then
	}{
		{"nothing", func(*testing.T, *testIssuer) {}, 0, 0},
		{"a few buyers at one address", func(t *testing.T, d *testIssuer) { d.asks(t, 18, farm, "other-%d") }, 0, 0},
		{"twice the calm rate", func(t *testing.T, d *testIssuer) { d.asks(t, 19, farm, "other-%d") }, 0, 1},
		{"eight times", func(t *testing.T, d *testIssuer) { d.asks(t, 79, farm, "other-%d") }, 0, 3},
		{"beyond the bound", func(t *testing.T, d *testIssuer) { d.asks(t, 5000, farm, "other-%d") }, 0, MaxReputation},
		{"at rest for half the bound", func(t *testing.T, d *testIssuer) { d.asks(t, 5000, farm, "other-%d") }, 16 * time.Minute, MaxReputation - 1},
		{"at rest for half an hour", func(t *testing.T, d *testIssuer) { d.asks(t, 5000, farm, "other-%d") }, 31 * time.Minute, 0},
		{"one buyer at many addresses", func(t *testing.T, d *testIssuer) { d.asks(t, 39, honest, "robot") }, 0, 2},
		{"another address, another buyer", func(t *testing.T, d *testIssuer) { d.asks(t, 500, honest, "other-%d") }, 0, 0},
		{"wrong answers", func(t *testing.T, d *testIssuer) { d.errs(t, 10, farm) }, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := open(t, Pow, func(o *Options) { o.CalmPerAddr, o.PerBuyerPerMinute, o.CalmPerSecond = calm, 2*calm, 1e6 })
			// Switch off the buyer's own limit.
			d.Issuer.asks, d.Issuer.answers = nil, nil
			tc.do(t, d)
			if got := d.askFrom(t, farm, "robot", now.Add(tc.after)).Difficulty - 8; got != tc.want {
				t.Errorf("%d bits more, want %d", got, tc.want)
			}
		})
	}
}

// asks requests n challenges: of one buyer from n addresses, or of n buyers from
// one address.
func (d *testIssuer) asks(t *testing.T, n int, addr netip.Addr, buyer string) {
	t.Helper()
	for i := range n {
		name := buyer
		if buyer == "robot" {
			addr = addr.Next()
		} else {
			name = fmt.Sprintf(buyer, i)
		}
		d.askFrom(t, addr, name, now)
	}
}

// errs answers n challenges wrong, each of another buyer.
func (d *testIssuer) errs(t *testing.T, n int, addr netip.Addr) {
	t.Helper()
	for i := range n {
		buyer := fmt.Sprint("guesser-", i)
		c := d.askFrom(t, addr, buyer, now)
		if _, _, err := d.Redeem(t.Context(), Answer{Product: product(1), Buyer: buyer, Addr: addr, ChallengeID: c.ID, Text: "no"}, now); err == nil {
			t.Fatal("a wrong answer was taken")
		}
	}
}

// One account that requests, guesses and forges at its limits does not raise the
// price for others behind its address.
func TestReputation_OneAccountDoesNotAffectNeighbours(t *testing.T) {
	d := open(t, Pow, func(o *Options) {
		o.CalmPerAddr, o.PerBuyerPerMinute = DefaultCalmPerAddr, DefaultPerBuyerPerMinute
		o.Forges = func(addr netip.Addr, _ time.Time) bool { return addr == farm }
	})
	p := product(1)
	for at := now; at.Before(now.Add(30 * time.Minute)); at = at.Add(2 * time.Second) {
		c, err := d.Pose(t.Context(), Ask{Product: p, Buyer: "griefer", Addr: farm}, at)
		for err == nil {
			if _, _, err = d.Redeem(t.Context(), Answer{Product: p, Buyer: "griefer", Addr: farm, ChallengeID: c.ID, Text: "no"}, at); err == ErrWrong {
				err = nil
			}
		}
	}
	if c := d.askFrom(t, farm, "neighbour", now.Add(30*time.Minute)); c.Difficulty != 8 {
		t.Errorf("a neighbour works on %d bits, want 8", c.Difficulty)
	}
}

func TestReputation_ForgersAddressPaysMore(t *testing.T) {
	d := open(t, Pow, func(o *Options) {
		o.CalmPerAddr = 10
		o.Forges = func(addr netip.Addr, _ time.Time) bool { return addr == farm }
	})
	var forger, other Challenge
	for n := range 10 {
		forger = d.askFrom(t, farm, fmt.Sprint("robot-", n), now)
		other = d.askFrom(t, honest, fmt.Sprint("person-", n), now)
	}
	if forger.Difficulty != 8+2 || other.Difficulty != 8 {
		t.Errorf("after ten challenges a forger works on %d bits, another on %d, want 10 and 8", forger.Difficulty, other.Difficulty)
	}
}

// Two instances get half of an address's challenges each, and each counts double.
func TestReputation_AddressCountsOnAllInstances(t *testing.T) {
	d := open(t, Pow, func(o *Options) { o.CalmPerAddr = 240 })
	d.Share(2)
	var last Challenge
	for n := range 241 {
		last = d.askFrom(t, farm, fmt.Sprint("robot-", n), now)
	}
	if last.Difficulty != 8+1 {
		t.Errorf("%d bits, want 9", last.Difficulty)
	}
}

// Behind a proxy that shop.trusted_proxies does not name, all shoppers have the
// proxy's address.
func TestReputation_UnknownProxyPaysNothing(t *testing.T) {
	r, err := newReputation(DefaultCalmPerAddr, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, text := range []string{"127.0.0.1", "10.0.0.5", "192.168.1.1", "172.16.0.9", "::1", "fd00::7", "::ffff:10.0.0.5"} {
		addr := netip.MustParseAddr(text)
		for i := range 5000 {
			if bits := r.asked(addr, fmt.Sprintf("%s-%d", text, i), now); bits > 0 {
				t.Fatalf("shopper %d behind %s works on %d bits more", i, text, bits)
			}
		}
	}
}
