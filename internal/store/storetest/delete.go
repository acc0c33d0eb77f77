package storetest

import (
	"testing"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/store"
)

var deleteTests = []test{
	{"a real product, or one that has not ended, is not deleted", undeletable},
	{"a product that is being rebuilt or taken over is busy", func(t *testing.T, s *suite) {
		rebuilt := s.deletable(t)
		must(t, s.Store.BeginRebuild(t.Context(), rebuilt.ID, rebuilt.Epoch))
		s.wantNotDeleted(t, rebuilt.ID, seckill.CodeBusy)
		taken := s.rehearsal(t)
		_, err := s.Store.TakeOver(t.Context(), taken.ID, taken.Epoch, operator)
		must(t, err)
		s.setState(t, taken.ID, seckill.SaleEnded)
		s.wantNotDeleted(t, taken.ID, seckill.CodeBusy)
		s.openStore(t, s.product(t, taken.ID))
		s.delete(t, taken.ID)
	}},
	{"a product with a refund due is not deleted", func(t *testing.T, s *suite) {
		p := s.rehearsal(t)
		refund := s.owedRefund(t, p, "buyer")
		s.setState(t, p.ID, seckill.SaleEnded)
		s.wantNotDeleted(t, p.ID, seckill.CodeBusy)
		must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
		s.wantNotDeleted(t, p.ID, seckill.CodeWrongState)
		must(t, s.Store.RefundDone(t.Context(), refund.ID))
		s.delete(t, p.ID)
		equal(t, "money", len(s.moneyOf(t, p.ID)), 0)
	}},
	{"a deletion takes every row of the product, in parts, and no row of others", wholeDeletion},
	{"a product whose deletion has begun is not found, and its id cannot be reused", begunDeletion},
	{"a deletion can be begun again, and audits once", func(t *testing.T, s *suite) {
		p := s.deletable(t)
		s.wantAudited(t, p.ID, func() {
			for range 3 {
				again, err := s.Store.BeginDelete(t.Context(), p.ID, operator)
				must(t, err)
				equal(t, "id", again.ID, p.ID)
				equal(t, "epoch", again.Epoch, p.Epoch)
			}
		})
		s.delete(t, p.ID)
		equal(t, "audit lines of the product", s.audit(t, p.ID)[0].Action, "product.delete")
		_, _, err := s.Store.DeleteSome(t.Context(), p.ID)
		wantCode(t, err, seckill.CodeNotFound)
	}},
	{"a product can be deleted when its limit group has ended, and no product joins meanwhile", sharedDeletion},
	{"money that arrives after the deletion has begun is owed back, and stays", func(t *testing.T, s *suite) {
		p := s.rehearsal(t)
		order := s.buy(t, p, "buyer")
		s.setState(t, p.ID, seckill.SaleEnded)
		s.delete(t, p.ID)
		s.record(t, notice(order, "-late"), store.PaymentExcess)
		equal(t, "money", len(s.moneyOf(t, p.ID)), 2)
		for _, e := range s.events(t, p.ID) {
			equal(t, string(e.Kind)+" is of a test", e.Test, true)
		}
	}},
	{"the feed continues after its last events were deleted", func(t *testing.T, s *suite) {
		p := s.deletable(t)
		end, err := s.Store.FeedEnd(t.Context())
		must(t, err)
		s.delete(t, p.ID)
		after, err := s.Store.FeedEnd(t.Context())
		must(t, err)
		if after < end {
			t.Errorf("the feed ends at %d, and did at %d", after, end)
		}
		next := s.create(t)
		for _, e := range s.events(t, next.ID) {
			if e.ID <= end {
				t.Errorf("event %d has the number of one that was deleted", e.ID)
			}
		}
	}},
}

// rehearsal creates and preheats a test product. Unlike create, it does not check the promises
// when the test ends, because the product may be deleted then.
func (s *suite) rehearsal(t *testing.T, edits ...func(*seckill.Product)) seckill.Product {
	t.Helper()
	draft := s.draft(t)
	draft.Test = true
	for _, edit := range edits {
		edit(&draft)
	}
	p, err := s.Store.CreateProduct(t.Context(), draft, operator)
	must(t, err)
	return s.openEpoch(t, p.ID)
}

// deletable creates a test product with an order, and ends its sale.
func (s *suite) deletable(t *testing.T) seckill.Product {
	t.Helper()
	p := s.rehearsal(t)
	s.buy(t, p, "buyer")
	s.setState(t, p.ID, seckill.SaleEnded)
	return s.product(t, p.ID)
}

// wantNotDeleted expects that the deletion is refused and changes nothing.
func (s *suite) wantNotDeleted(t *testing.T, id uint32, code seckill.Code) {
	t.Helper()
	s.wantUnchanged(t, id, func() {
		_, err := s.Store.BeginDelete(t.Context(), id, operator)
		wantCode(t, err, code)
	})
}

// delete deletes a product, and returns the number of orders and parts.
func (s *suite) delete(t *testing.T, id uint32) (orders, parts int) {
	t.Helper()
	_, err := s.Store.BeginDelete(t.Context(), id, operator)
	must(t, err)
	for done := false; !done; parts++ {
		var some int
		some, done, err = s.Store.DeleteSome(t.Context(), id)
		must(t, err)
		orders += some
	}
	return orders, parts
}

func (s *suite) moneyOf(t *testing.T, product uint32) []store.Payment {
	t.Helper()
	money, err := s.Store.Payments(t.Context(), store.PaymentFilter{ProductID: product, Limit: all})
	must(t, err)
	return money
}

func undeletable(t *testing.T, s *suite) {
	sold := s.preheated(t)
	s.setState(t, sold.ID, seckill.SaleEnded)
	s.wantNotDeleted(t, sold.ID, seckill.CodeNotTest)
	open := s.rehearsal(t)
	s.wantNotDeleted(t, open.ID, seckill.CodeWrongState)
	s.setState(t, open.ID, seckill.SalePaused)
	s.wantNotDeleted(t, open.ID, seckill.CodeWrongState)
	_, err := s.Store.BeginDelete(t.Context(), newProductID(), operator)
	wantCode(t, err, seckill.CodeNotFound)
	_, _, err = s.Store.DeleteSome(t.Context(), open.ID)
	wantCode(t, err, seckill.CodeNotFound)
}

// wholeDeletion gives two products rows in every table, and deletes one of the products.
func wholeDeletion(t *testing.T, s *suite) {
	full := func() (seckill.Product, []seckill.Order) {
		p := s.rehearsal(t, stock(5000), perUser(3))
		var orders []seckill.Order
		for i := range 4 {
			orders = append(orders, s.buy(t, p, numbered("buyer", i), quantity(2), key("k")))
		}
		s.pay(t, orders[0])
		s.cancel(t, orders[1])
		refunded := s.pay(t, orders[2])
		_, err := s.Store.Refund(t.Context(), refunded.OrderNo, operator)
		must(t, err)
		var items []store.Item
		for i := range 1200 {
			items = append(items, s.item(t, p, numbered("crowd", i)))
		}
		_, err = s.Store.Confirm(t.Context(), request(items...))
		must(t, err)
		parked := s.item(t, p, "parked")
		must(t, s.Store.Fail(t.Context(), []store.Item{s.item(t, p, "failed")}, seckill.ReasonLost))
		_, err = s.Store.Confirm(t.Context(), store.ConfirmRequest{
			ProductID: p.ID, Park: []store.Parked{{Item: parked, Reason: "odd", Delay: far}}, ExpireAfter: far,
		})
		must(t, err)
		s.change(t, p, 3)
		unknown := payment.Notice{
			Provider: "sandbox", TradeNo: parked.Claim.OrderNo.String() + "-u", AmountCents: 1, Currency: "CNY",
			OrderNo: seckill.NewOrderNo(s.now(t), p.ID, s.orders.Add(1)).String(),
		}
		s.record(t, unknown, store.PaymentExcess)
		for _, m := range s.moneyOf(t, p.ID) {
			if m.Status == "due" {
				must(t, s.Store.RefundDone(t.Context(), m.ID))
			}
		}
		_, err = s.Store.SaveReconciliation(t.Context(), store.Reconciliation{ProductID: p.ID, Body: []byte("{}")})
		must(t, err)
		must(t, s.Store.Acknowledge(t.Context(), p.ID, p.Epoch, "instance"))
		s.setState(t, p.ID, seckill.SaleEnded)
		return p, orders
	}
	p, orders := full()
	other, _ := full()
	before, events, money := s.figures(t, other.ID), s.events(t, other.ID), s.moneyOf(t, other.ID)

	began := time.Now()
	deleted, parts := s.delete(t, p.ID)
	t.Logf("%d orders in %d parts took %s", deleted, parts, time.Since(began))
	equal(t, "orders deleted", deleted, 1205)
	if parts < 4 {
		t.Errorf("%d orders were deleted in %d transactions", deleted, parts)
	}

	found, err := s.Store.SearchOrders(t.Context(), store.OrderFilter{ProductID: p.ID, Limit: all})
	must(t, err)
	equal(t, "orders", len(found), 0)
	equal(t, "events", len(s.events(t, p.ID)), 0)
	equal(t, "money", len(s.moneyOf(t, p.ID)), 0)
	letters, err := s.Store.Letters(t.Context(), store.LetterFilter{ProductID: p.ID, Limit: all})
	must(t, err)
	equal(t, "letters", len(letters), 0)
	reports, err := s.Store.Reconciliations(t.Context(), p.ID, 0, all)
	must(t, err)
	equal(t, "reports", len(reports), 0)
	equal(t, "releases", len(s.owed(t, p.ID)), 0)
	for _, order := range orders {
		story, err := s.Store.Story(t.Context(), order.OrderNo)
		if err != nil {
			wantCode(t, err, seckill.CodeNotFound)
		}
		for _, line := range story {
			equal(t, "what is left of an order", line.Kind, "operator") // the audit
		}
	}
	if len(s.audit(t, p.ID)) == 0 {
		t.Error("the audit is gone")
	}

	after := s.figures(t, other.ID)
	equal(t, "figures of the other product", after, before)
	equal(t, "events of the other product", s.events(t, other.ID), events)
	equal(t, "money of the other product", s.moneyOf(t, other.ID), money)
	CheckPromises(t, s.Store, other.ID)
}

func begunDeletion(t *testing.T, s *suite) {
	p := s.deletable(t)
	item := s.item(t, p, "late")
	deleted := func(id uint32, want bool) {
		t.Helper()
		got, err := s.Store.Deleted(t.Context(), id)
		must(t, err)
		equal(t, "deleted", got, want)
	}
	deleted(p.ID, false)
	deleted(newProductID(), false)
	_, err := s.Store.BeginDelete(t.Context(), p.ID, operator)
	must(t, err)
	gone := func(t *testing.T) {
		deleted(p.ID, true)
		_, err := s.Store.Product(t.Context(), p.ID)
		wantCode(t, err, seckill.CodeNotFound)
		products, err := s.Store.Products(t.Context(), store.ProductFilter{Limit: all})
		must(t, err)
		for _, one := range products {
			if one.ID == p.ID {
				t.Error("it is listed")
			}
		}
		_, err = s.Store.Confirm(t.Context(), request(item))
		wantCode(t, err, seckill.CodeNotFound)
		_, err = s.Store.SetState(t.Context(), p.ID, operatorSets(seckill.SaleOpen))
		wantCode(t, err, seckill.CodeNotFound)
		_, err = s.Store.OpenEpoch(t.Context(), p.ID, p.Epoch, 0, operator, func(seckill.Order) error { return nil })
		wantCode(t, err, seckill.CodeNotFound)
		draft := s.draft(t)
		draft.ID, draft.Group = p.ID, p.ID
		_, err = s.Store.CreateProduct(t.Context(), draft, operator)
		wantCode(t, err, seckill.CodeWrongState)
		ends, err := s.Store.UncountedEnds(t.Context(), all)
		must(t, err)
		for _, id := range ends {
			if id == p.ID {
				t.Error("its end is to be counted")
			}
		}
	}
	gone(t)
	s.delete(t, p.ID)
	gone(t)
	_, err = s.Store.BeginDelete(t.Context(), p.ID, operator)
	wantCode(t, err, seckill.CodeNotFound)
}

func sharedDeletion(t *testing.T, s *suite) {
	owner := s.rehearsal(t, perUser(3))
	member := s.rehearsal(t, perUser(3), inGroup(owner.ID))
	for _, p := range []seckill.Product{owner, member} {
		s.buy(t, p, "both")
		s.buy(t, p, numbered("only", int(p.ID)))
	}
	s.setState(t, member.ID, seckill.SaleEnded)
	s.wantNotDeleted(t, member.ID, seckill.CodeWrongState)
	s.setState(t, owner.ID, seckill.SalePaused)
	s.wantNotDeleted(t, member.ID, seckill.CodeWrongState)
	s.setState(t, owner.ID, seckill.SaleEnded)
	s.wantNotDeleted(t, owner.ID, seckill.CodeWrongState)

	late := s.draft(t)
	late.Test, late.PerUserLimit, late.Group = true, 3, owner.ID
	_, err := s.Store.BeginDelete(t.Context(), member.ID, operator)
	must(t, err)
	_, err = s.Store.CreateProduct(t.Context(), late, operator)
	wantCode(t, err, seckill.CodeWrongState)
	s.delete(t, member.ID)
	_, err = s.Store.CreateProduct(t.Context(), late, operator)
	must(t, err)
	findings, err := s.Store.CheckBuyers(t.Context(), owner.ID, all)
	must(t, err)
	equal(t, "findings", len(findings), 0)
	CheckPromises(t, s.Store, owner.ID)
}
