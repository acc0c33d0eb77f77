package storesql

import (
	"fmt"
	"strings"
	"testing"

	"seckill"
)

// A person judges what the log and the orders disagree about: the findings say
// which rows and which orders to look at.
func TestFindingsOfTheStockLogNameRowsAndOrders(t *testing.T) {
	everyDatabase(t, func(t *testing.T, s *Store) {
		p := sale(t, s, 10)
		items := claims(&p, 3)
		if _, err := s.Confirm(t.Context(), request(&p, items)); err != nil {
			t.Fatal(err)
		}
		no := make([]string, len(items))
		for i := range items {
			no[i] = items[i].Claim.OrderNo.String()
		}
		if _, err := s.Cancel(t.Context(), items[2].Claim.OrderNo, seckill.ReasonByBuyer, operator); err != nil {
			t.Fatal(err)
		}
		damage(t, s, `UPDATE tb_stock_log SET order_no = ? WHERE seq = 2`, no[1])      // sold: the first's to the second
		damage(t, s, `UPDATE tb_stock_log SET order_no = 'SK-none' WHERE seq = 4`)     // sold: the third's
		damage(t, s, `UPDATE tb_stock_log SET order_no = NULL WHERE seq = 5`)          // returned: the third's
		damage(t, s, `UPDATE tb_stock_log SET order_no = ? WHERE seq = 1`, "SK-first") // the operator's
		got, err := s.CheckStockLog(t.Context(), p.ID, 10)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range got {
			lines = append(lines, fmt.Sprintf("want %s, got %s: %s", f.Expected, f.Found, f.Detail))
		}
		want := []string{
			`want no order, got SK-first: order_no of stock log 1, which is an operator's change`,
			`want no row, got 1 row, quantity 1: rows of type 2 in the stock log that name no order; the last is stock log 5`,
			`want no row, got 1 row, quantity 1: rows of type 1 in the stock log that name order "SK-none", which the product does not have; the last is stock log 4`,
			`want 1 row, quantity 1, got no row: rows of type 1 in the stock log that name order ` + no[0] + `, which is pending`,
			`want 1 row, quantity 1, got 2 rows, quantity 2 in all: rows of type 1 in the stock log that name order ` + no[1] + `, which is pending; the last is stock log 3`,
			`want 1 row, quantity 1, got no row: rows of type 1 in the stock log that name order ` + no[2] + `, which is cancelled`,
			`want 1 row, quantity 1, got no row: rows of type 2 in the stock log that name order ` + no[2] + `, which is cancelled`,
		}
		if text := strings.Join(lines, "\n"); text != strings.Join(want, "\n") {
			t.Errorf("findings are\n%s\nwant\n%s", text, strings.Join(want, "\n"))
		}
	})
}
