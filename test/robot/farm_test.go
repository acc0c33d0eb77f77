package robot

import (
	"fmt"
	"testing"

	"seckill/test/engine"
)

// A farm has 1,000 accounts at one address. Its proofs of work become harder
// than those of honest buyers at other addresses, and do not become harder for
// those buyers.
func TestRobot_FarmAtOneAddressNeedsMoreProofs(t *testing.T) {
	t.Parallel()
	const base, accounts = 8, 1000
	e := engine.Start(t, engine.Options{Settings: map[string]string{
		"token.required": "true", "challenge.kind": "pow", "challenge.pow_bits": fmt.Sprint(base), "challenge.pow_calm_per_second": "200",
		"shop.trusted_proxies": proxyAddr,
	}})
	open(t, e, engine.Product{ID: 1, Stock: 5})
	r := New(t)
	ask := func(name, from string) int {
		t.Helper()
		posed, got := r.Account(e, name).From(proxyAddr).Saying("X-Forwarded-For", from).Ask(1, "")
		if got.Code != "" {
			t.Fatalf("%s is refused a challenge: %s", name, got.Text)
		}
		return posed.Difficulty
	}
	last, honest := 0, 0
	for n := range accounts {
		last = ask(fmt.Sprint("robot-", n), "192.0.2.1")
		if n%100 == 99 {
			honest = ask(fmt.Sprint("person-", n), fmt.Sprintf("198.51.100.%d", n/100))
		}
	}
	// 1,000 are more than eight times the calm rate of 120 a minute; on a slow
	// machine the rate of the farm is lower.
	if last < base+2 || honest > last-2 {
		t.Errorf("the farm works on %d bits, honest buyers on %d, the base is %d", last, honest, base)
	}
	if honest != base {
		t.Errorf("the farm raised the price for honest buyers to %d bits, want %d", honest, base)
	}
}
