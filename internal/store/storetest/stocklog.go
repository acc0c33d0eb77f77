package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/store"
)

var stockLogTests = []test{
	{"the log of orders in every state, whoever sold them, has nothing to find", soundStockLog},
	{"a broken chain is found", brokenChain},
	{"a log that does not say what the orders say is found, and the orders named", forgedStockLog},
	{"findings are at most limit", func(t *testing.T, s *suite) {
		for name, damage := range map[string]string{
			"chain":  "UPDATE tb_stock_log SET before_stock = before_stock + 7 WHERE product_id = ?",
			"orders": "UPDATE tb_stock_log SET order_no = NULL WHERE product_id = ?",
		} {
			t.Run(name, func(t *testing.T) {
				p := s.damaged(t)
				s.Exec(t, damage, p.ID)
				equal(t, "findings", len(s.logFindings(t, p.ID, 2)), 2)
			})
		}
	}},
}

// logFindings checks the log; findings say what was expected and what is there.
func (s *suite) logFindings(t *testing.T, product uint32, limit int) []store.Finding {
	t.Helper()
	findings, err := s.Store.CheckStockLog(t.Context(), product, limit)
	must(t, err)
	for _, f := range findings {
		if f.Expected == "" || f.Found == "" || f.Detail == "" {
			t.Errorf("a finding does not say what is wrong: %+v", f)
		}
	}
	return findings
}

func soundStockLog(t *testing.T, s *suite) {
	for name, sale := range map[string]struct {
		open soldBy
		buy  func(t TB, p seckill.Product, buyer string, edits ...func(*store.Item)) seckill.Order
	}{
		"ledger": {s.preheated, s.buy}, "taken over": {s.takenOver, s.buyOver},
	} {
		t.Run(name, func(t *testing.T) {
			p := sale.open(t, perUser(2), sharded(2))
			sale.buy(t, p, "pending", quantity(2))
			s.pay(t, sale.buy(t, p, "paid"))
			s.cancel(t, sale.buy(t, p, "cancelled", quantity(2)))
			_, err := s.Store.Refund(t.Context(), s.pay(t, sale.buy(t, p, "refunded")).OrderNo, operator)
			must(t, err)
			sale.buy(t, p, "cancelled") // again
			s.change(t, p, 3)
			s.confirm(t, []store.Item{s.item(t, p, "pending")}, store.ConfirmOverLimit)
			must(t, s.Store.Fail(t.Context(), []store.Item{s.item(t, p, "late")}, seckill.ReasonLost))
			_, err = s.Store.DiscardLetter(t.Context(), s.dead(t, p, "discarded").LetterID, operator)
			must(t, err)
			equal(t, "failed", s.figures(t, p.ID).Failed, 3)
			equal(t, "findings", s.logFindings(t, p.ID, all), nil)
		})
	}
}

func brokenChain(t *testing.T, s *suite) {
	for name, damage := range map[string]string{
		"a row is missing":             "DELETE FROM tb_stock_log WHERE product_id = ? AND seq = 2",
		"the last row is missing":      "DELETE FROM tb_stock_log WHERE product_id = ? AND after_stock = 12 AND type = 3",
		"a row's after is wrong":       "UPDATE tb_stock_log SET after_stock = after_stock + 1 WHERE product_id = ? AND seq = 2",
		"a row's before is wrong":      "UPDATE tb_stock_log SET before_stock = before_stock + 1 WHERE product_id = ? AND seq = 3",
		"a row's quantity is wrong":    "UPDATE tb_stock_log SET quantity = quantity + 1 WHERE product_id = ? AND seq = 3",
		"the product's stock is wrong": "UPDATE tb_seckill_product SET stock = stock + 1 WHERE id = ?",
	} {
		t.Run(name, func(t *testing.T) {
			p := s.damaged(t)
			equal(t, "stock", p.Stock, 12)
			s.Exec(t, damage, p.ID)
			if len(s.logFindings(t, p.ID, all)) == 0 {
				t.Fatal("nothing was found")
			}
		})
	}
}

// In the statements, [two], [one] and [same] are live orders of two, one and
// one units, [back] and [gone] cancelled ones of one and two, and [other] is
// another product's. All of the damage leaves the chain and its sums whole.
func forgedStockLog(t *testing.T, s *suite) {
	other := s.buy(t, s.preheated(t), "other")
	for name, c := range map[string]struct {
		damage string
		names  string // the orders that findings name, and no others
	}{
		"a sold row that names another live order": {
			"UPDATE tb_stock_log SET order_no = '[one]' WHERE type = 1 AND order_no = '[same]'", "[one] [same]"},
		"a sold row that names a cancelled order": {
			"UPDATE tb_stock_log SET order_no = '[back]' WHERE type = 1 AND order_no = '[one]'", "[back] [one]"},
		"a sold row that names an order of another product": {
			"UPDATE tb_stock_log SET order_no = '[other]' WHERE order_no = '[one]'", "[one] [other]"},
		"a sold row that names an unknown order": {
			"UPDATE tb_stock_log SET order_no = 'SK-unknown' WHERE order_no = '[one]'", "[one] SK-unknown"},
		"a sold row that names no order": {
			"UPDATE tb_stock_log SET order_no = NULL WHERE order_no = '[one]'", "[one]"},
		"two sold rows that changed places, of different quantities": {
			`UPDATE tb_stock_log SET order_no = CASE order_no WHEN '[one]' THEN '[two]' ELSE '[one]' END
				WHERE type = 1 AND order_no IN ('[one]', '[two]')`, "[one] [two]"},
		// Not a difference in any figure: each order has its row, with its quantity.
		"two sold rows that changed places, of equal quantities": {
			`UPDATE tb_stock_log SET order_no = CASE order_no WHEN '[one]' THEN '[same]' ELSE '[one]' END
				WHERE type = 1 AND order_no IN ('[one]', '[same]')`, ""},
		"a returned row that names another cancelled order": {
			"UPDATE tb_stock_log SET order_no = '[gone]' WHERE type = 2 AND order_no = '[back]'", "[back] [gone]"},
		"a returned row that names a live order": {
			"UPDATE tb_stock_log SET order_no = '[one]' WHERE type = 2 AND order_no = '[back]'", "[back] [one]"},
		"a returned row that names no order": {
			"UPDATE tb_stock_log SET order_no = NULL WHERE type = 2 AND order_no = '[back]'", "[back]"},
		"a returned row that is an operator's": {
			"UPDATE tb_stock_log SET type = 3, order_no = NULL WHERE type = 2 AND order_no = '[back]'", "[back]"},
		"a returned row of a type that there is not": {
			"UPDATE tb_stock_log SET type = 4 WHERE type = 2 AND order_no = '[back]'", "[back]"},
		"an operator's row that names an order": {
			"UPDATE tb_stock_log SET order_no = '[one]' WHERE type = 3 AND seq = 1 AND product_id = [product]", "[one]"},
		"orders that changed quantities with each other": {
			"UPDATE tb_seckill_order SET quantity = 3 - quantity WHERE order_no IN ('[one]', '[two]')", "[one] [two]"},
		"orders that changed states with each other": {
			"UPDATE tb_seckill_order SET status = 2 - status WHERE order_no IN ('[one]', '[back]')", "[one] [back]"},
		"a live order that has failed": {
			"UPDATE tb_seckill_order SET status = 3 WHERE order_no = '[one]'", "[one]"},
		"an order whose row is gone": {
			"DELETE FROM tb_seckill_order WHERE order_no = '[one]'", "[one]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.exposed(t)
			fill := s.orderNames(t, p, other)
			s.Exec(t, fill(c.damage))
			findings, want := s.logFindings(t, p.ID, all), strings.Fields(fill(c.names))
			equal(t, "something was found", len(findings) > 0, len(want) > 0)
			orders, err := ordersOf(t.Context(), s.Store, store.OrderFilter{ProductID: p.ID})
			must(t, err)
			for _, no := range append(numbers(orders), want...) {
				named := slices.ContainsFunc(findings, func(f store.Finding) bool { return strings.Contains(f.Found+f.Detail, no) })
				equal(t, no+" is named", named, slices.Contains(want, no))
			}
		})
	}
}

// orderNames makes the orders of forgedStockLog, and returns what puts their
// numbers in the place of their names.
func (s *suite) orderNames(t *testing.T, p seckill.Product, other seckill.Order) func(string) string {
	t.Helper()
	names := []string{"[product]", fmt.Sprint(p.ID)}
	for name, order := range map[string]seckill.Order{
		"[two]": s.buy(t, p, "two", quantity(2)), "[one]": s.buy(t, p, "one"), "[same]": s.buy(t, p, "same"),
		"[back]": s.cancel(t, s.buy(t, p, "back")), "[gone]": s.cancel(t, s.buy(t, p, "gone", quantity(2))),
		"[other]": other,
	} {
		names = append(names, name, order.OrderNo.String())
	}
	return strings.NewReplacer(names...).Replace
}
