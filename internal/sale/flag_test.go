package sale_test

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/sale"
	"seckill/test/rig"
	"seckill/test/virtual"
)

// behind is a sale whose instance has others to catch up with.
type behind struct {
	*sale.Sale
	catalog *sale.Catalog
	raises  []func() // that wait until it has
}

func newBehind(t *testing.T) *behind {
	t.Helper()
	b := &behind{catalog: sale.NewCatalog(&shelf{products: []seckill.Product{{ID: 1}}})}
	b.catalog.Peers = catchingUp{behind: b}
	rig.Must(t, b.catalog.Refresh(t.Context()))
	b.Sale = b.catalog.Find(1)
	return b
}

// catchingUp holds back every flag until catchesUp.
type catchingUp struct {
	sale.Alone
	behind *behind
}

func (c catchingUp) CatchUp(_ *sale.Sale, raise func()) {
	c.behind.raises = append(c.behind.raises, raise)
}

// catchesUp has everything raised that waits.
func (b *behind) catchesUp() {
	for _, raise := range b.raises {
		raise()
	}
	b.raises = nil
}

func TestTheFlagIsRaisedWhenTheOthersWereHeard(t *testing.T) {
	for name, mark := range map[string]func(*behind){
		"on the ledger's word":  func(b *behind) { b.RaiseSoldOut(time.Now()) },
		"on another instance's": func(b *behind) { b.HearSoldOut(0) },
	} {
		virtual.Test(t, func(t *testing.T) {
			b := newBehind(t)
			mark(b)
			if b.SoldOut() || !b.Empty() {
				t.Errorf("%s: raised at once, or nobody is told that all is sold", name)
			}
			b.catchesUp()
			if !b.SoldOut() {
				t.Errorf("%s: not raised", name)
			}
		})
	}
}

// To catch up costs every instance a message: a flag that stands for nearly as
// long is left alone.
func TestACrowdDoesNotHaveTheFlagRaisedAgainAndAgain(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		b, caught := newBehind(t), 0
		for range 1000 { // milliseconds
			b.RaiseSoldOut(time.Now())
			caught += len(b.raises)
			b.catchesUp()
			if !b.SoldOut() {
				t.Fatal("the flag fell")
			}
			wait(time.Millisecond)
		}
		if caught < 5 || caught > 10 {
			t.Errorf("caught up %d times in a second", caught)
		}
	})
}

// The units came back after the ledger was asked: what it said is over. It may
// take a while until it would be acted upon.
func TestAProofFromBeforeUnitsCameBackRaisesNothing(t *testing.T) {
	for name, back := range map[string]func(*behind){
		"here":                  func(b *behind) { b.ClearSoldOut() },
		"elsewhere":             func(b *behind) { b.HearUnitsBack() },
		"all flags are doubted": func(b *behind) { b.catalog.LowerFlags() },
	} {
		virtual.Test(t, func(t *testing.T) {
			b := newBehind(t)
			b.RaiseSoldOut(time.Now())
			wait(100 * time.Millisecond)
			back(b)
			b.catchesUp()
			if b.SoldOut() || b.Empty() {
				t.Errorf("%s: raised by the proof of before", name)
			}
			wait(time.Millisecond)
			b.HearSoldOut(50 * time.Millisecond)
			b.catchesUp()
			if b.SoldOut() {
				t.Errorf("%s: raised by another's proof of before", name)
			}
			b.RaiseSoldOut(time.Now())
			b.catchesUp()
			if !b.SoldOut() {
				t.Errorf("%s: not raised by a proof since", name)
			}
		})
	}
}

// A call that may have sold the last unit is under way, and its buyers are not
// known: the flag waits for it, and for none that began later.
func TestTheFlagWaitsForCallsOfBefore(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		c := sale.NewCatalog(&shelf{products: []seckill.Product{{ID: 1}}})
		rig.Must(t, c.Refresh(t.Context()))
		on := c.Find(1)
		first, second := on.Begin(), on.Begin()
		on.RaiseSoldOut(time.Now())
		later := on.Begin()
		on.End(second)
		if on.SoldOut() {
			t.Error("raised while a call of before is under way")
		}
		on.RaiseSoldOut(time.Now()) // must not begin to wait for the later one
		on.End(first)
		if !on.SoldOut() {
			t.Error("not raised when the calls of before had ended")
		}
		on.ClearSoldOut()
		on.End(later)
		if on.SoldOut() {
			t.Error("raised once more by an old proof")
		}
		on.RaiseSoldOut(time.Now())
		if !on.SoldOut() {
			t.Error("not raised at once with no call under way")
		}
	})
}
