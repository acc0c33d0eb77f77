package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"seckill"

	"seckill/test/login"
)

// toll is the cost of one gate: a door where this gate refuses a claim that passed
// all gates before it, and the budget of allocations. "" means that the claim is
// admitted. The queue gate is measured with the purchase stage.
type toll struct {
	gate   Gate
	budget float64
	close  func(tb testing.TB, d *door, req *Request)
}

func tolls() []toll {
	return []toll{
		{GateWindow, 0, func(_ testing.TB, d *door, _ *Request) { d.shelf.terms.State = seckill.SaleEnded }},
		{GateSoldOut, 0, func(tb testing.TB, d *door, _ *Request) { d.on(tb).RaiseSoldOut(time.Now().Add(time.Hour)) }},
		{GateSoldOut, 0, func(tb testing.TB, d *door, req *Request) { // a new token of a public key
			l := keyed(tb, d)
			req.Authorization = l.bearer(l.shop, "k", "bob", time.Hour)
			d.on(tb).RaiseSoldOut(time.Now().Add(time.Hour))
		}},
		{GateAddressRate, 0, func(tb testing.TB, d *door, _ *Request) {
			d.ByAddr = spent(tb, func(l *Limiter, now time.Time) { l.Allow(AddrKey(addr), now) })
		}},
		{GateBuyer, 0, func(tb testing.TB, _ *door, req *Request) {
			token, err := login.Token([]byte("a forger's secret, which is another"), "bob", time.Now().Add(time.Hour))
			must(tb, err)
			req.Authorization = []byte("Bearer " + token)
		}},
		{GateBuyer, 0, func(tb testing.TB, d *door, req *Request) { // a forged token
			l := keyed(tb, d)
			req.Authorization = l.bearer(l.thief, "k", "bob", time.Hour)
			d.ByForger = spent(tb, func(l *Limiter, now time.Time) { l.Allow(AddrKey(addr), now) })
		}},
		{GateBuyerRate, 0, func(tb testing.TB, d *door, _ *Request) {
			d.ByBuyer = spent(tb, func(l *Limiter, now time.Time) { l.Allow(BytesKey([]byte("bob")), now) })
		}},
		// From here on the body has been read, and a refusal may say what is wrong
		// with it. The strings of an admitted claim are made after the last gate.
		{GateBody, 3, func(_ testing.TB, _ *door, req *Request) { req.Body = []byte(`{"quantity":0}`) }},
		{GateToken, 0, func(_ testing.TB, d *door, req *Request) { d.TokenRequired, req.Body = true, []byte(`{"quantity":1}`) }},
		{GateProductRate, 0, func(tb testing.TB, d *door, _ *Request) {
			d.ByProduct = spent(tb, func(l *Limiter, now time.Time) { l.Allow(ProductKey(7), now) })
		}},
		{"", 2, func(testing.TB, *door, *Request) {}},
	}
}

// stand returns a door with all limits on that refuses at one gate, and a claim.
func (g toll) stand(tb testing.TB) (admit func() Refusal) {
	tb.Helper()
	d := newDoor(tb)
	for _, limit := range []**Limiter{&d.ByAddr, &d.ByBuyer, &d.ByProduct, &d.ByForger} {
		l, err := New(Options{PerSecond: MaxRate, Burst: MaxBurst})
		must(tb, err)
		*limit = l
	}
	req := &Request{
		Authorization: bearer(tb, "bob"), Addr: addr,
		Body: fmt.Appendf(nil, `{"quantity":1,"token":%q}`, d.token(tb, "bob", 7)),
	}
	g.close(tb, d, req)
	on := d.on(tb)
	return func() Refusal {
		req.buyer, req.reason = nil, nil
		var pass Pass
		return d.Admit(on, req, &pass)
	}
}

func TestAdmit_EveryGateKeepsItsAllocBudget(t *testing.T) {
	var met []Gate
	for _, g := range tolls() {
		met = append(met, g.gate)
		admit := g.stand(t)
		if got := admit(); got.Gate != g.gate {
			t.Errorf("gate %q: refused by %+v", g.gate, got)
		}
		if raceEnabled {
			continue // the race detector itself allocates
		}
		if got := testing.AllocsPerRun(1000, func() { admit() }); got > g.budget {
			t.Errorf("gate %q allocates %v times, budget %v", g.gate, got, g.budget)
		}
	}
	if want := append(slices.Clone(Gates[:len(Gates)-1]), ""); !slices.Equal(slices.Compact(met), want) {
		t.Errorf("budgets of %q, want %q", met, want)
	}
}

func BenchmarkGate(b *testing.B) {
	for _, g := range tolls() {
		name := string(g.gate)
		if name == "" {
			name = "admitted"
		}
		b.Run(name, func(b *testing.B) {
			admit := g.stand(b)
			b.ReportAllocs()
			for b.Loop() {
				admit()
			}
		})
	}
}
