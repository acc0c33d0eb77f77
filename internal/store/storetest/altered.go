package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var alteredMoneyTests = []test{
	{"money altered by hand is found, and mended only where that is safe", alteredMoney},
	{"money kept under another product is found from both", func(t *testing.T, s *suite) {
		p, other := s.damaged(t), s.damaged(t)
		order := s.pay(t, s.buy(t, p, "filed elsewhere"))
		s.Exec(t, "UPDATE tb_payment SET product_id = ? WHERE order_no = ?", other.ID, order.OrderNo.String())
		equal(t, "findings of the order's product", len(s.moneyFindings(t, p.ID)), 1)
		equal(t, "findings of the other", len(s.moneyFindings(t, other.ID)), 1)
	}},
	{"a payment that was made due is not given away", func(t *testing.T, s *suite) {
		order := s.pay(t, s.buy(t, s.damaged(t), "payment"))
		s.Exec(t, "UPDATE tb_payment SET status = 'due', next_time = 1 WHERE order_no = ?", order.OrderNo.String())
		equal(t, "due", s.refundDue(t, s.payments(t, order.OrderNo.String(), "payment")[0].ID), false)
	}},
	{"a refund that would return another sum is not tried again", func(t *testing.T, s *suite) {
		refund := s.owedRefund(t, s.damaged(t), "another sum")
		must(t, s.Store.RefundFailed(t.Context(), refund.ID, "refused", -1))
		s.Exec(t, "UPDATE tb_payment SET amount_cents = amount_cents + 1 WHERE id = ?", refund.ID)
		_, err := s.Store.RetryRefund(t.Context(), refund.ID, operator)
		refused(t, err, seckill.CodeWrongState)
		equal(t, "due", s.refundDue(t, refund.ID), false)
	}},
}

// alteration is one row of money that somebody changed.
type alteration struct {
	name     string
	set      string
	findings int
	mended   bool
}

func alteredMoney(t *testing.T, s *suite) {
	refunds := []alteration{
		{"less than was paid", "amount_cents = amount_cents - 1", 1, false},
		{"more than was paid", "amount_cents = amount_cents + 1", 1, false},
		{"in another currency", "currency = 'XTS'", 1, false},
		{"of another order", "order_no = 'another'", 1, false},
		{"of another trade", "trade_no = CONCAT('x', trade_no)", 1, false},
		{"by another provider", "provider = 'another'", 1, false},
		{"of no product", "product_id = 0", 1, false},
		{"of no payment", "payment_id = NULL", 2, false},
		{"of an unknown type", "type = 'gift'", 1, false},
		{"of an unknown status", "status = 'lost'", 1, false},
		{"said to be done", "status = 'done'", 1, false},
		{"said to be done, and not due", "status = 'done', next_time = NULL", 1, false},
		{"due at no time", "next_time = NULL", 1, true},
		{"due at a time that never comes", "next_time = 9000000000000000", 1, true},
		{"given up", "status = 'failed', next_time = NULL", 1, true},
		{"given up, and of another sum", "status = 'failed', next_time = NULL, amount_cents = 1", 2, false},
	}
	payments := []alteration{
		{"less than goes back", "amount_cents = amount_cents - 1", 1, false},
		{"of no product", "product_id = 0", 2, false},
		{"of an unknown type", "type = 'gift'", 2, false},
		{"of an unknown status", "status = 'lost'", 1, false},
		{"applied to a cancelled order", "status = 'applied'", 1, false},
		{"with a time to try it", "next_time = 1", 1, false},
	}
	applied := []alteration{
		{"of no product", "product_id = 0", 1, false},
		{"of another order", "order_no = 'another'", 2, false},
		{"of an unknown type", "type = 'gift'", 2, false},
		{"of an unknown status", "status = 'lost'", 2, false},
		{"made a refund that is due", "type = 'refund', status = 'due', next_time = 1", 2, false},
	}
	late := func(t *testing.T, p seckill.Product) string { return s.owedRefund(t, p, "late").OrderNo }
	for _, c := range refunds {
		t.Run("a refund "+c.name, func(t *testing.T) { s.alterMoney(t, c, late, "refund") })
	}
	for _, c := range payments {
		t.Run("excess money "+c.name, func(t *testing.T) { s.alterMoney(t, c, late, "payment") })
	}
	for _, c := range applied {
		t.Run("a payment "+c.name, func(t *testing.T) {
			s.alterMoney(t, c, func(t *testing.T, p seckill.Product) string {
				return s.pay(t, s.buy(t, p, "payer")).OrderNo.String()
			}, "payment")
		})
	}
}

// alterMoney changes a row of an order's money, and looks for it.
func (s *suite) alterMoney(t *testing.T, c alteration, pay func(t *testing.T, p seckill.Product) string, kind string) {
	t.Helper()
	p := s.damaged(t)
	no := pay(t, p)
	equal(t, "findings before", len(s.moneyFindings(t, p.ID)), 0)
	s.Exec(t, "UPDATE tb_payment SET "+c.set+" WHERE type = ? AND order_no = ?", kind, no)
	found := s.moneyFindings(t, p.ID)
	if len(found) != c.findings {
		t.Errorf("found %+v, want %d findings", found, c.findings)
	}
	for range 2 {
		_, err := s.Store.RepairMoney(t.Context(), p.ID, all, operator)
		must(t, err)
	}
	if left := s.moneyFindings(t, p.ID); c.mended != (len(left) == 0) || !c.mended && len(left) != c.findings {
		t.Errorf("after the repair: %+v", left)
	}
}

func (s *suite) moneyFindings(t *testing.T, product uint32) []store.Finding {
	t.Helper()
	findings, err := s.Store.CheckMoney(t.Context(), product, all)
	must(t, err)
	return findings
}
