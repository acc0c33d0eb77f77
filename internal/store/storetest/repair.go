package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var repairTests = []test{
	{"a sound product has nothing to find and nothing to repair", func(t *testing.T, s *suite) {
		p := s.history(t)
		CheckPromises(t, s.Store, p.ID)
		s.unchanged(t, p.ID, func() {
			n, err := s.Store.RepairBuyers(t.Context(), p.Group, all, operator)
			must(t, err)
			equal(t, "buyers repaired", n, 0)
			n, err = s.Store.RepairMoney(t.Context(), p.ID, all, operator)
			must(t, err)
			equal(t, "money repaired", n, 0)
		})
	}},
	{"damaged buyer records are found and set to what live orders say", damagedBuyers},
	{"repair of buyers is bounded and writes the audit", boundedBuyers},
	{"money that nobody owes is found and owed", lostRefunds},
	{"repair of money is bounded", boundedMoney},
	{"a paid order without its payment is found", func(t *testing.T, s *suite) {
		p := s.damaged(t)
		order := s.buy(t, p, "unpaid")
		s.Exec(t, "UPDATE tb_seckill_order SET status = ? WHERE order_no = ?", int(seckill.OrderPaid), order.OrderNo.String())
		findings, err := s.Store.CheckMoney(t.Context(), p.ID, all)
		must(t, err)
		equal(t, "findings", len(findings), 1)
	}},
	{"a paid order that was cancelled is found", func(t *testing.T, s *suite) {
		p := s.damaged(t)
		order := s.pay(t, s.buy(t, p, "paid and cancelled"))
		s.Exec(t, "UPDATE tb_seckill_order SET status = ? WHERE order_no = ?", int(seckill.OrderCancelled), order.OrderNo.String())
		findings, err := s.Store.CheckMoney(t.Context(), p.ID, all)
		must(t, err)
		equal(t, "findings", len(findings), 1)
	}},
}

// history is a product on which everything has happened.
func (s *suite) history(t *testing.T) seckill.Product {
	t.Helper()
	p := s.preheated(t, perUser(3))
	s.play(t, p)
	return s.product(t, p.ID)
}

func (s *suite) play(t *testing.T, p seckill.Product) {
	t.Helper()
	s.buy(t, p, "pending", quantity(2))
	s.pay(t, s.buy(t, p, "paid"))
	late := s.cancel(t, s.buy(t, p, "late"))
	s.record(t, notice(late, "-late"), store.PaymentExcess)
	order := s.pay(t, s.buy(t, p, "refunded"))
	_, err := s.Store.Refund(t.Context(), order.OrderNo, operator)
	must(t, err)
	s.confirm(t, []store.Item{s.item(t, p, "pending", quantity(2))}, store.ConfirmOverLimit)
	s.change(t, p, 5)
}

// damaged is a product with a history that the test may damage.
func (s *suite) damaged(t *testing.T) seckill.Product {
	t.Helper()
	p := s.exposed(t)
	s.play(t, p)
	return s.product(t, p.ID)
}

// exposed is a new product that the test may damage: its promises are not
// checked at the end.
func (s *suite) exposed(t *testing.T) seckill.Product {
	t.Helper()
	if s.Exec == nil {
		t.Skip("the harness cannot damage the store")
	}
	draft := s.draft(t)
	draft.PerUserLimit = 3
	_, err := s.Store.CreateProduct(t.Context(), draft, operator)
	must(t, err)
	return s.openEpoch(t, draft.ID)
}

func (s *suite) buyerFindings(t *testing.T, group uint32, limit int) int {
	t.Helper()
	findings, err := s.Store.CheckBuyers(t.Context(), group, limit)
	must(t, err)
	return len(findings)
}

func damagedBuyers(t *testing.T, s *suite) {
	for name, damage := range map[string]string{
		"too many units":      "UPDATE tb_user_seckill SET quantity = quantity + 1 WHERE product_id = ?",
		"too few units":       "UPDATE tb_user_seckill SET quantity = quantity - 1 WHERE quantity > 1 AND product_id = ?",
		"records are missing": "DELETE FROM tb_user_seckill WHERE product_id = ?",
		"a record too many":   "UPDATE tb_seckill_order SET status = 2 WHERE status = 0 AND product_id = ?",
	} {
		t.Run(name, func(t *testing.T) {
			p := s.damaged(t)
			s.Exec(t, damage, p.ID)
			if s.buyerFindings(t, p.Group, all) == 0 {
				t.Fatal("nothing was found")
			}
			n, err := s.Store.RepairBuyers(t.Context(), p.Group, all, operator)
			must(t, err)
			if n == 0 {
				t.Error("nothing was repaired")
			}
			equal(t, "findings after the repair", s.buyerFindings(t, p.Group, all), 0)
			again, err := s.Store.RepairBuyers(t.Context(), p.Group, all, operator)
			must(t, err)
			equal(t, "repaired again", again, 0)
		})
	}
}

func boundedBuyers(t *testing.T, s *suite) {
	p := s.damaged(t)
	for i := range 3 {
		s.buy(t, p, numbered("buyer", i))
	}
	s.Exec(t, "DELETE FROM tb_user_seckill WHERE product_id = ?", p.ID)
	equal(t, "findings within a limit", s.buyerFindings(t, p.Group, 2), 2)
	before := s.buyerFindings(t, p.Group, all)
	s.audited(t, p.ID, func() {
		n, err := s.Store.RepairBuyers(t.Context(), p.Group, 2, operator)
		must(t, err)
		equal(t, "repaired", n, 2)
	})
	equal(t, "findings left", s.buyerFindings(t, p.Group, all), before-2)
	// A repaired record counts against the limit again.
	_, err := s.Store.RepairBuyers(t.Context(), p.Group, all, operator)
	must(t, err)
	s.confirm(t, []store.Item{s.item(t, p, "buyer-0", quantity(3))}, store.ConfirmOverLimit)
}

func lostRefunds(t *testing.T, s *suite) {
	p := s.damaged(t)
	order := s.cancel(t, s.buy(t, p, "lost"))
	s.record(t, notice(order, "-1"), store.PaymentExcess)
	s.Exec(t, "DELETE FROM tb_payment WHERE type = 'refund' AND order_no = ?", order.OrderNo.String())
	equal(t, "refunds", len(s.payments(t, order.OrderNo.String(), "refund")), 0)
	findings, err := s.Store.CheckMoney(t.Context(), p.ID, all)
	must(t, err)
	equal(t, "findings", len(findings), 1)

	n, err := s.Store.RepairMoney(t.Context(), p.ID, all, operator)
	must(t, err)
	equal(t, "repaired", n, 1)
	refund := s.refundOf(t, notice(order, "-1"))
	equal(t, "amount", refund.AmountCents, order.AmountCents())
	n, err = s.Store.RepairMoney(t.Context(), p.ID, all, operator)
	must(t, err)
	equal(t, "repaired again", n, 0)
	findings, err = s.Store.CheckMoney(t.Context(), p.ID, all)
	must(t, err)
	equal(t, "findings after the repair", len(findings), 0)
}

func boundedMoney(t *testing.T, s *suite) {
	p := s.damaged(t)
	order := s.cancel(t, s.buy(t, p, "lost"))
	for i := range 3 {
		s.record(t, notice(order, numbered("", i)), store.PaymentExcess)
	}
	s.Exec(t, "DELETE FROM tb_payment WHERE type = 'refund' AND order_no = ?", order.OrderNo.String())
	findings, err := s.Store.CheckMoney(t.Context(), p.ID, 2)
	must(t, err)
	equal(t, "findings within a limit", len(findings), 2)
	for _, want := range []int{2, 1, 0} {
		n, err := s.Store.RepairMoney(t.Context(), p.ID, 2, operator)
		must(t, err)
		equal(t, "repaired", n, want)
	}
	equal(t, "refunds", len(s.payments(t, order.OrderNo.String(), "refund")), 3)
}
