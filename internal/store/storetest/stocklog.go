package storetest

import (
	"testing"

	"seckill"
	"seckill/internal/store"
)

var stockLogTests = []test{
	{"the stock log of orders in every state is valid, for ledger and store", soundStockLog},
	{"a broken chain is found", brokenChain},
	{"findings are at most limit", func(t *testing.T, s *suite) {
		p := s.damaged(t)
		s.Exec(t, "UPDATE tb_stock_log SET before_stock = before_stock + 7 WHERE product_id = ?", p.ID)
		equal(t, "findings", len(s.logFindings(t, p.ID, 2)), 2)
	}},
}

// logFindings runs CheckStockLog.
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
		"ledger": {s.preheated, s.buy}, "taken over": {s.takenOver, s.buyFromStore},
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
