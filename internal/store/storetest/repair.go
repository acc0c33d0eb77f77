package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var repairTests = []test{
	{"a valid product has no findings and no repairs", func(t *testing.T, s *suite) {
		p := s.history(t)
		CheckPromises(t, s.Store, p.ID)
		s.wantUnchanged(t, p.ID, func() {
			n, err := s.Store.RepairBuyers(t.Context(), p.Group, all, operator)
			must(t, err)
			equal(t, "buyers repaired", n, 0)
			n, err = s.Store.RetryRefunds(t.Context(), p.ID, all, operator)
			must(t, err)
			equal(t, "refunds tried again", n, 0)
		})
	}},
	{"damaged buyer records are found and set to the live orders", damagedBuyers},
	{"repair of buyers is bounded and writes the audit", boundedBuyers},
	{"refunds that need care are found and retried, within a limit", boundedRefunds},
	{"money that does not add up is found", damagedMoney},
}

// history creates a product with every kind of order, payment and change.
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

// damaged creates a product with a history, which the test may damage.
func (s *suite) damaged(t *testing.T) seckill.Product {
	t.Helper()
	p := s.damageable(t)
	s.play(t, p)
	return s.product(t, p.ID)
}

// damageable creates a product that the test may damage. Its promises are not checked at the end.
func (s *suite) damageable(t *testing.T) seckill.Product {
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
	s.wantAudited(t, p.ID, func() {
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

func boundedRefunds(t *testing.T, s *suite) {
	p := s.damaged(t)
	order := s.cancel(t, s.buy(t, p, "late"))
	for i := range 3 {
		s.record(t, notice(order, numbered("", i)), store.PaymentExcess)
	}
	for _, refund := range s.payments(t, order.OrderNo.String(), "refund") {
		must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
	}
	findings, err := s.Store.CheckMoney(t.Context(), p.ID, 2)
	must(t, err)
	equal(t, "findings within a limit", len(findings), 2)
	for _, want := range []int{2, 1, 0} {
		n, err := s.Store.RetryRefunds(t.Context(), p.ID, 2, operator)
		must(t, err)
		equal(t, "tried again", n, want)
	}
	equal(t, "findings afterwards", len(s.moneyFindings(t, p.ID)), 0)
}

// Money that does not add up is reported, but not repaired: a person must decide.
func damagedMoney(t *testing.T, s *suite) {
	for name, c := range map[string]struct{ kind, damage string }{
		"a refund that is gone":                  {"refund", "DELETE FROM tb_payment WHERE type = 'refund' AND order_no = ?"},
		"a refund of less than was paid":         {"refund", "UPDATE tb_payment SET amount_cents = amount_cents - 1 WHERE type = 'refund' AND order_no = ?"},
		"a refund of another trade":              {"refund", "UPDATE tb_payment SET trade_no = 'another' WHERE type = 'refund' AND order_no = ?"},
		"a refund of no payment":                 {"refund", "UPDATE tb_payment SET payment_id = NULL WHERE type = 'refund' AND order_no = ?"},
		"a payment applied to a cancelled order": {"refund", "UPDATE tb_payment SET status = 'applied' WHERE type = 'payment' AND order_no = ?"},
		"a payment of less than the order":       {"payment", "UPDATE tb_payment SET amount_cents = 1 WHERE order_no = ?"},
		"a paid order without its payment":       {"payment", "DELETE FROM tb_payment WHERE order_no = ?"},
		"a paid order that was cancelled":        {"payment", "UPDATE tb_seckill_order SET status = 2 WHERE order_no = ?"},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.damaged(t)
			var no string
			if c.kind == "refund" {
				no = s.owedRefund(t, p, "late").OrderNo
			} else {
				no = s.pay(t, s.buy(t, p, "payer")).OrderNo.String()
			}
			equal(t, "findings before", len(s.moneyFindings(t, p.ID)), 0)
			s.Exec(t, c.damage, no)
			if len(s.moneyFindings(t, p.ID)) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func (s *suite) moneyFindings(t *testing.T, product uint32) []store.Finding {
	t.Helper()
	findings, err := s.Store.CheckMoney(t.Context(), product, all)
	must(t, err)
	return findings
}
