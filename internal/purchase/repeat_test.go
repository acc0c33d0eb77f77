package purchase_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill"
	"seckill/internal/purchase"
	"seckill/test/rig"
	"seckill/test/virtual"
)

// answers are the answers to one claim that is sent repeatedly with one key.
type answers struct {
	buyer string
	all   sync.WaitGroup

	mu    sync.Mutex
	found map[seckill.OrderNo]int
	codes map[seckill.Code]int
}

func repeated(buyer string) *answers {
	return &answers{buyer: buyer, found: map[seckill.OrderNo]int{}, codes: map[seckill.Code]int{}}
}

// send sends the claim and does not wait for the answer.
func (a *answers) send(at *outlet) {
	a.all.Go(func() {
		bought, err := at.Buy(at.on, purchase.Claim{Buyer: a.buyer, Quantity: 1, Key: "k"})
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.codes[code(err)]++; err == nil {
			a.found[bought.OrderNo]++
		}
	})
}

// agree checks that all answers have the same order.
func (a *answers) agree(t *testing.T) {
	t.Helper()
	a.all.Wait()
	if len(a.codes) != 1 || len(a.found) != 1 {
		t.Errorf("one claim was answered %v, with the orders %v", a.codes, a.found)
	}
}

// The last unit is on another shard, and a claim is repeated while it waits for the unit.
// There is one unit, so the second request must find the first one's order.
func TestSupply_RepeatedClaimThatWaitsFindsOrder(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 1)
		o.remote.slow = 5 * time.Millisecond
		claim := repeated(o.homed(0, 1))
		for range 10 {
			claim.send(o)
			virtual.Sleep(time.Millisecond)
		}
		claim.agree(t)
		o.want(t, o.homed(0, 2), 1, seckill.CodeSoldOut)
		o.exactlyOnce(t)
	})
}

func TestSupply_ClaimRepeatedAtAnotherInstanceFindsOrder(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		virtual.Test(t, func(t *testing.T) {
			a := newOutlet(t, 0, 1, 0)
			b := a.another(t)
			a.remote.slow = slow
			claim := repeated(a.homed(0, 1))
			for range 5 {
				claim.send(a)
				claim.send(b)
				virtual.Sleep(slow / 3)
			}
			claim.agree(t)
			b.want(t, a.homed(1, 2), 1, seckill.CodeSoldOut)
			a.exactlyOnce(t)
		})
	}
}

// The shard's refusal is in flight while the last unit is brought and sold to the same
// claim, and sold out is proven. The flag must wait: the buyer of an earlier call may not
// be remembered yet, and that refusal is older than the proof.
func TestSoldOut_FlagWaitsForCallsInFlight(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutlet(t, 0, 1)
		o.remote.slow = 50 * time.Millisecond
		claim := repeated(o.homed(0, 1))
		claim.send(o) // waits for the unit until 50 ms
		virtual.Sleep(time.Millisecond)
		claim.send(o) // waits for the proof
		virtual.Sleep(40 * time.Millisecond)
		o.remote.setLag(300 * time.Millisecond)
		claim.send(o)
		synctest.Wait()
		o.remote.setLag(0)
		virtual.Sleep(250 * time.Millisecond)
		if o.on.SoldOut() {
			t.Error("the flag is raised while the reply is on its way")
		}
		claim.agree(t)
		if !o.on.SoldOut() {
			t.Error("the flag is not raised: the test shows nothing")
		}
	})
}

// If the shard decides a claim too late after the proof, the proof is not used.
func TestSupply_OldProofIsNoAnswer(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		o := newOutletWith(t, func(opt *purchase.Options) { opt.Lane.CallTimeout = 2 * time.Second }, 0, 0)
		o.remote.slow = 10 * time.Millisecond
		time.AfterFunc(5*time.Millisecond, func() { o.remote.setPace(1200 * time.Millisecond) })
		asked := time.Now()
		_, err := o.Buy(o.on, purchase.Claim{Buyer: "a", Quantity: 1})
		rig.Refused(t, err, seckill.CodeTooHot)
		if took := time.Since(asked); took < time.Second || took > 2*time.Second {
			t.Errorf("answered after %v", took)
		}
	})
}
