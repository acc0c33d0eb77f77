package purchase_test

import (
	"sync"
	"testing"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/purchase"
	"seckill/test/rig"
)

// diary is what a stage was told to remember.
type diary struct {
	mu      sync.Mutex
	entries []seckill.Entry
}

func (d *diary) remember(e seckill.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, e)
}

func (d *diary) of(no seckill.OrderNo) (claims []seckill.Claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries {
		for _, claim := range e.Claims {
			if claim.OrderNo == no {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

// repeats is a counter whose buyer b has asked under a key at another instance.
func repeats(t *testing.T) (c *counter, d *diary, no seckill.OrderNo) {
	t.Helper()
	d = &diary{}
	c = newCounterOf(t, 10, []func(*seckill.Product){func(p *seckill.Product) { p.PerUserLimit = 2 }}, func(o *purchase.Options) { o.Remember = d.remember })
	claim := c.Claim(1, "b")
	claim.Key, claim.Ref = "cart", "shop-7"
	c.Reserve(t, *c.on.Terms(), claim)
	return c, d, claim.OrderNo
}

func TestA202ThatWasFoundAgainIsRememberedAsItWasPromised(t *testing.T) {
	c, d, no := repeats(t)
	for range 3 {
		again, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 2, Key: "cart"}) // it asked for 1
		rig.Must(t, err)
		if again != no {
			t.Fatalf("the key has bought %s after %s", again, no)
		}
	}
	claims := d.of(no)
	if len(claims) != 1 || claims[0].Quantity != 1 || claims[0].Key != "cart" || claims[0].Ref != "shop-7" {
		t.Errorf("remembered is %+v", claims)
	}
}

func TestAnOrderThatHasItsRowIsNotRememberedAgain(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *counter, no seckill.OrderNo){
		"confirmed": func(*testing.T, *counter, seckill.OrderNo) {},
		"cancelled": func(t *testing.T, c *counter, no seckill.OrderNo) {
			_, err := c.Store.Cancel(t.Context(), no, seckill.ReasonByBuyer, rig.Operator)
			rig.Must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, d, no := repeats(t)
			c.ConfirmAll(t)
			end(t, c, no)
			again, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1, Key: "cart"})
			rig.Must(t, err)
			if again != no || len(d.of(no)) != 0 {
				t.Errorf("answered %s, remembered %+v", again, d.of(no))
			}
		})
	}
}

// A 202 that nobody would remember does not leave.
func TestARepeatedClaimThatCannotBeRememberedIsBusy(t *testing.T) {
	c, d, no := repeats(t)
	c.Ledger.FailBefore("Held", 1)
	_, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1, Key: "cart"})
	rig.Refused(t, err, seckill.CodeBusy)
	again, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1, Key: "cart"})
	rig.Must(t, err)
	if again != no || len(d.of(no)) != 1 {
		t.Errorf("answered %s, remembered %+v", again, d.of(no))
	}
}

// The ledger has found the order, and is lost before it tells what to remember of
// it: a 202 would name an order that nobody has.
func TestARepeatedClaimWhoseLedgerForgotItSinceIsBusy(t *testing.T) {
	c, d, no := repeats(t)
	c.Ledger.Before("Held", func() { c.LoseJournal(t) })
	_, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1, Key: "cart"})
	rig.Refused(t, err, seckill.CodeBusy)
	if len(d.of(no)) != 0 {
		t.Errorf("remembered is %+v", d.of(no))
	}
}

func TestTheKeyOfACancelledOrderIsAnsweredWithIt(t *testing.T) {
	c, d, no := repeats(t)
	c.ConfirmAll(t)
	_, err := c.Store.Cancel(t.Context(), no, seckill.ReasonByBuyer, rig.Operator)
	rig.Must(t, err)
	p := *c.on.Terms()
	_, err = c.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.Release{Orders: []ledger.ReleaseOrder{{Buyer: "b", OrderNo: no}}})
	rig.Must(t, err)
	for range 2 {
		again, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1, Key: "cart"})
		rig.Must(t, err)
		if again != no || len(d.of(no)) != 0 {
			t.Errorf("answered %s, remembered %+v", again, d.of(no))
		}
	}
}

func TestARepeatedClaimIsNoDualWrite(t *testing.T) {
	c, results := newDual(t, 10)
	claim := c.Claim(1, "b")
	claim.Key = "cart"
	c.Reserve(t, *c.on.Terms(), claim)
	_, err := c.Buy(c.on, purchase.Claim{Buyer: "b", Quantity: 1, Key: "cart"})
	rig.Must(t, err)
	_, err = c.buy("c")
	rig.Must(t, err)
	rig.Until(t, "c's batch was tried or left", func() bool {
		return results(purchase.DualWriteConfirmed)+results(purchase.DualWriteLate) == 1
	})
	if c.Status(t, claim.OrderNo) == seckill.OrderPending {
		t.Error("a repeated claim was written at once")
	}
}
