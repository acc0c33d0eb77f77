package storesql

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/test/server"
)

// hinder makes every update of a table fail for rows that meet a condition, like a row that
// somebody edited by hand.
func hinder(t *testing.T, s *Store, table, condition string) {
	t.Helper()
	body := "IF " + condition + " THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'blocked by the test'; END IF"
	if s.dialect == &sqliteDialect {
		body = "BEGIN SELECT RAISE(ABORT, 'blocked by the test') WHERE " + condition + "; END"
	}
	damage(t, s, "CREATE TRIGGER hinder_"+table+" BEFORE UPDATE ON "+table+" FOR EACH ROW "+body)
}

// dueSales creates two sales with due orders and dead letters.
func dueSales(t *testing.T, s *Store, each int) (products []seckill.Product, items [][]store.Item) {
	t.Helper()
	for id := range uint32(2) {
		p := sale(t, s, 100, func(p *seckill.Product) { p.ID = 7 + id })
		bought := claims(&p, each)
		req := request(&p, bought)
		req.ExpireAfter = -time.Second
		for _, item := range claims(&p, each) {
			req.Park = append(req.Park, store.Parked{Item: item, Reason: "does not fit", Delay: time.Hour})
		}
		if _, err := s.Confirm(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		products, items = append(products, p), append(items, bought)
	}
	damage(t, s, "UPDATE tb_dead_letter SET dead_time = create_time - 1000")
	return products, items
}

func TestDue_UnsettledRowsBlockNoOtherProduct(t *testing.T) {
	const each = 12
	for kind, newStore := range map[string]func(*testing.T) string{
		"SQLite":  func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "store.db") },
		"MariaDB": func(t *testing.T) string { return server.SharedMariaDB(t).NewDatabase(t) },
	} {
		for name, c := range map[string]struct {
			letters bool
			given   bool // orders are given by number
			limit   int
			settled []int // expected number of settled rows, one per call
		}{
			"orders, page by page":  {limit: each / 2, settled: []int{each / 2, each / 2, 0}},
			"given orders":          {given: true, settled: []int{each, 0}},
			"letters, page by page": {letters: true, limit: each / 2, settled: []int{each / 2, each / 2, 0}},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				var log strings.Builder
				s := openAt(t, newStore(t), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				_, items := dueSales(t, s, each)
				table, settle := "tb_seckill_order", func() (int, error) {
					expired, err := s.Expire(t.Context(), c.limit)
					return len(expired), err
				}
				if c.given {
					var nos []seckill.OrderNo
					for _, item := range slices.Concat(items...) {
						nos = append(nos, item.Claim.OrderNo)
					}
					settle = func() (int, error) {
						expired, err := s.ExpireOrders(t.Context(), nos)
						return len(expired), err
					}
				}
				condition := fmt.Sprintf("OLD.order_no = '%s'", items[0][0].Claim.OrderNo)
				if c.letters {
					table, settle = "tb_dead_letter", func() (int, error) { return s.DiscardDead(t.Context(), 0, c.limit) }
					condition = fmt.Sprint("OLD.id = ", firstLetter(t, s))
				}
				hinder(t, s, table, condition)
				for i, want := range c.settled {
					got, err := settle()
					if err != nil || got != want {
						t.Errorf("call %d settled %d, not %d: %v", i, got, want, err)
					}
				}
				if want := `msg="a product was passed over: its due rows cannot be settled" table=` + table + ` product_id=7`; !strings.Contains(log.String(), want) ||
					!strings.Contains(log.String(), "blocked by the test") {
					t.Errorf("the log does not say %s:\n%s", want, log.String())
				}
				damage(t, s, "DROP TRIGGER hinder_"+table)
				if got, err := settle(); err != nil || got == 0 {
					t.Errorf("%d settled after the repair: %v", got, err)
				}
			})
		}
	}
}

func firstLetter(t *testing.T, s *Store) int64 {
	t.Helper()
	letters, err := s.Letters(t.Context(), store.LetterFilter{Limit: 1})
	if err != nil || len(letters) == 0 {
		t.Fatalf("letters %v: %v", letters, err)
	}
	return letters[0].ID
}

func TestDue_FailsIfNoProductCanBeSettled(t *testing.T) {
	s := openNew(t)
	p := sale(t, s, 1000)
	req := request(&p, claims(&p, maxHeldUp+2))
	req.ExpireAfter = -time.Second
	if _, err := s.Confirm(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	damage(t, s, "UPDATE tb_seckill_order SET product_id = 1000 + rowid")
	for _, limit := range []int{1, 1000} {
		if orders, err := s.Expire(t.Context(), limit); err == nil || len(orders) != 0 {
			t.Errorf("Expire of at most %d orders succeeded, but settled nothing: %v", limit, orders)
		}
	}
}
