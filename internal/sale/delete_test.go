package sale_test

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/test/rig"
)

func rehearsal(p *seckill.Product) { p.Test = true }

// rehearsed is a test product with two orders, whose sale was ended.
func rehearsed(t *testing.T, r *rig.Rig, id uint32, changes ...func(*seckill.Product)) seckill.Product {
	t.Helper()
	p := r.Open(t, id, 5, append(changes, rehearsal)...)
	r.Buy(t, p, "ann", "bob")
	r.ConfirmAll(t)
	_, err := r.Lifecycle.SetState(t.Context(), id, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	return r.Stored(t, id)
}

// goneSales are the sales that the catalogue has given up.
type goneSales struct {
	sale.NoFollower
	ids []uint32
}

func (g *goneSales) ProductGone(s *sale.Sale) { g.ids = append(g.ids, s.ID) }

func TestDelete_TakesOrdersAndMarks(t *testing.T) {
	for _, shape := range []func(*seckill.Product){rig.Limit(2), rig.Shards(4)} {
		r := rig.New(t)
		p := rehearsed(t, r, 1, shape)
		gone := &goneSales{}
		r.Catalog.Follow(gone)
		orders, err := r.Lifecycle.Delete(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		if orders != 2 {
			t.Errorf("%d orders were deleted, want 2", orders)
		}
		if r.Catalog.Find(1) != nil || len(gone.ids) != 1 || !r.Catalog.IsTest(1) {
			t.Errorf("the catalogue has it, told %v, and knows it as a test: %t", gone.ids, r.Catalog.IsTest(1))
		}
		f := r.Figures(t, p)
		if f.Marked != 0 || f.Orders != 0 || f.Available != 0 || f.Open {
			t.Errorf("the ledger has %+v", f)
		}
		held, err := r.Ledger.Held(t.Context(), ledger.ShardOf(&p, seckill.HomeShard(&p, "ann")), "ann")
		rig.Must(t, err)
		if len(held) != 0 {
			t.Errorf("the ledger holds %v", held)
		}
		_, err = r.Lifecycle.Delete(t.Context(), 1, rig.Operator)
		rig.Refused(t, err, seckill.CodeNotFound)
	}
}

func TestDelete_RefusesWhatIsNotOver(t *testing.T) {
	r := rig.New(t)
	r.Open(t, 1, 5)
	_, err := r.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	_, err = r.Lifecycle.Delete(t.Context(), 1, rig.Operator)
	rig.Refused(t, err, seckill.CodeNotTest)

	p := r.Open(t, 2, 5, rehearsal)
	_, err = r.Lifecycle.Delete(t.Context(), 2, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState)
	r.Buy(t, p, "ann")
	_, err = r.Lifecycle.SetState(t.Context(), 2, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	_, err = r.Lifecycle.Delete(t.Context(), 2, rig.Operator)
	rig.Refused(t, err, seckill.CodeBusy) // ann's order is queued
	r.ConfirmAll(t)
	_, err = r.Lifecycle.Delete(t.Context(), 2, rig.Operator)
	rig.Must(t, err)

	_, err = r.Lifecycle.Delete(t.Context(), 3, rig.Operator)
	rig.Refused(t, err, seckill.CodeNotFound)
}

func TestDelete_EndsWhatIsOverByTheClock(t *testing.T) {
	r := rig.New(t)
	p := r.Open(t, 1, 5, rehearsal)
	r.Time.Advance(p.EndsAt.Sub(r.Time.Now()) + time.Second)
	rig.Must(t, r.Clock.Sync(t.Context()))
	_, err := r.Lifecycle.Delete(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
}

// TestDelete_GoesOnAfterAFault lets each step fail once, with and without effect.
func TestDelete_GoesOnAfterAFault(t *testing.T) {
	for name, fail := range map[string]func(r *rig.Rig){
		"begin":            func(r *rig.Rig) { r.Store.FailBefore("BeginDelete", 1) },
		"begin, unheard":   func(r *rig.Rig) { r.Store.FailAfter("BeginDelete", 1) },
		"a part":           func(r *rig.Rig) { r.Store.FailBefore("DeleteSome", 1) },
		"a part, unheard":  func(r *rig.Rig) { r.Store.FailAfter("DeleteSome", 1) },
		"ledger read":      func(r *rig.Rig) { r.Ledger.FailBefore("Read", 1) },
		"install":          func(r *rig.Rig) { r.Ledger.FailBefore("Install", 1) },
		"install, unheard": func(r *rig.Rig) { r.Ledger.FailAfter("Install", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p := rehearsed(t, r, 1)
			fail(r)
			if _, err := r.Lifecycle.Delete(t.Context(), 1, rig.Operator); err == nil {
				t.Fatal("the fault did not strike")
			}
			if _, err := r.Lifecycle.Delete(t.Context(), 1, rig.Operator); err != nil && !seckill.CodeNotFound.In(err) {
				t.Fatalf("repeated: %v", err)
			}
			if f := r.Figures(t, p); f.Marked != 0 {
				t.Errorf("the ledger has %+v", f)
			}
			_, err := r.Store.Order(t.Context(), seckill.NewOrderNo(time.Now(), 1, 1))
			rig.Refused(t, err, seckill.CodeNotFound)
		})
	}
}

// TestDelete_LeavesTheOtherProductsOfTheGroup deletes one of two test products
// that share a limit, once the other has ended as well.
func TestDelete_LeavesTheOtherProductsOfTheGroup(t *testing.T) {
	r := rig.New(t)
	owner := r.Open(t, 1, 5, rehearsal, rig.Limit(2))
	r.Buy(t, owner, "ann", "bob")
	member := rehearsed(t, r, 2, rig.Limit(2), func(p *seckill.Product) { p.Group = 1 })
	_, err := r.Lifecycle.Delete(t.Context(), 2, rig.Operator)
	rig.Refused(t, err, seckill.CodeWrongState)
	if f := r.Figures(t, member); f.Marked != 2 {
		t.Errorf("refused, the ledger of the member has %+v", f)
	}
	_, err = r.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	_, err = r.Lifecycle.Delete(t.Context(), 2, rig.Operator)
	rig.Must(t, err)
	if f := r.Figures(t, member); f.Marked != 0 {
		t.Errorf("the ledger of the deleted one has %+v", f)
	}
	if f := r.Figures(t, owner); f.Marked != 2 || f.Available != 3 || !f.Open {
		t.Errorf("the ledger of the other has %+v", f)
	}
	if findings, err := r.Store.CheckBuyers(t.Context(), 1, 10); err != nil || len(findings) != 0 {
		t.Errorf("buyer records: %v, %v", findings, err)
	}
}

// TestDelete_OtherProductsOfTheGroupSellNothingMeanwhile cuts a deletion short. The
// ledger has let go of the product's marks, and the store has not let go of its
// orders: a purchase of another product of the group would fail by the limit (I4).
func TestDelete_OtherProductsOfTheGroupSellNothingMeanwhile(t *testing.T) {
	r := rig.New(t)
	owner := r.Open(t, 1, 5, rehearsal, rig.Limit(1))
	rehearsed(t, r, 2, rig.Limit(1), func(p *seckill.Product) { p.Group = 1 })
	// The ledger has not heard of the end.
	_, err := r.Store.SetState(t.Context(), 1, seckill.Instruction{State: seckill.SaleEnded, Actor: rig.Operator.Name})
	rig.Must(t, err)
	r.Store.FailBefore("DeleteSome", 1)
	if _, err := r.Lifecycle.Delete(t.Context(), 2, rig.Operator); err == nil {
		t.Fatal("the fault did not strike")
	}
	if v := r.Reserve(t, owner, r.Claim(1, "ann")); v[0].Code != ledger.VerdictEnded {
		t.Errorf("a purchase of the other product was answered %d", v[0].Code)
	}
}
