package storesql

import (
	"context"
	"fmt"
	"math/rand/v2"

	"seckill"
	"seckill/internal/store"
)

// The figures for operators are not counted order by order. Every transaction that writes or
// moves orders adds their units to the sums of their product. Payments do not lock the product.
// So that they need not wait for each other's commits, a sum has several slots, and a
// transaction uses a random one. It does so last, so that the slot is locked only during the
// commit.

const (
	sqlTally = `SELECT status, SUM(units) FROM tb_order_units WHERE product_id = ? GROUP BY status`
	// One statement, so that orders and sums come from one snapshot.
	sqlTallyWrong = `SELECT status, SUM(orders), SUM(kept) FROM (
		SELECT status, SUM(quantity) AS orders, 0 AS kept FROM tb_seckill_order WHERE product_id = ? GROUP BY status
		UNION ALL SELECT status, 0, SUM(units) FROM tb_order_units WHERE product_id = ? GROUP BY status) AS sums
		GROUP BY status HAVING SUM(orders) <> SUM(kept)`
	sqlOpenLetters = `SELECT COUNT(*), MIN(create_time) FROM tb_dead_letter WHERE product_id = ? AND closed_time IS NULL`
)

// units is the change of a product's units in one status.
type units struct {
	status seckill.OrderStatus
	n      int64
}

// countUnits adds to the sums of a product, by ascending status, so that all transactions lock
// the sums in one order.
func countUnits(ctx context.Context, tx *session, product uint32, changes ...units) error {
	slot := rand.IntN(tx.dialect.unitSlots)
	rows := make([]any, 0, len(changes)*tx.dialect.countUnits.columns)
	for _, c := range changes {
		rows = append(rows, product, int64(c.status), slot, c.n)
	}
	_, err := tx.execRows(ctx, tx.dialect.countUnits, nil, rows)
	return err
}

// tally reads the sums of a product.
func tally(ctx context.Context, r *session, product uint32) (all seckill.Counted, err error) {
	err = r.query(ctx, sqlTally, []any{product}, func(row scanner) error {
		var u orderSum
		err := row.Scan(&u.status, &u.units)
		u.addTo(&all)
		return err
	})
	return all, err
}

func (s *Store) Tally(ctx context.Context, id uint32) (store.Tally, error) {
	var t store.Tally
	err := s.snapshot(ctx, "read figures", func(ctx context.Context, r *session) error {
		p, err := readProduct(ctx, r, id)
		if err != nil {
			return err
		}
		t.Product = p.Product
		if t.Counted, err = tally(ctx, r, id); err != nil {
			return err
		}
		_, err = r.row(ctx, sqlOpenLetters, []any{id}, &t.Letters, millisTime{&t.OldestLetter})
		return err
	})
	if err != nil {
		return store.Tally{}, err
	}
	return t, nil
}

// wrongSum is a sum that differs from the orders.
type wrongSum struct {
	status       seckill.OrderStatus
	orders, kept int64
}

func wrongSums(ctx context.Context, r *session, product uint32) ([]wrongSum, error) {
	return selectAll(ctx, r, sqlTallyWrong, []any{product, product}, func(row scanner, w *wrongSum) error {
		return row.Scan(&w.status, &w.orders, &w.kept)
	})
}

func (s *Store) CheckTally(ctx context.Context, id uint32) (found []store.Finding, err error) {
	err = s.read(ctx, "check sums", func(ctx context.Context, r *session) error {
		wrong, err := wrongSums(ctx, r, id)
		found = nil
		for _, w := range wrong {
			found = append(found, store.Finding{
				Expected: fmt.Sprint(w.orders), Found: fmt.Sprint(w.kept), Detail: fmt.Sprintf("sum of %s units compared with the orders", w.status),
			})
		}
		return err
	})
	return found, err
}

// RepairTally sets the sums of a product to its orders. It adds the differences of one
// snapshot: concurrent moves change orders and sums alike.
func (s *Store) RepairTally(ctx context.Context, id uint32, actor store.Actor) (int, error) {
	return changed(ctx, s, "repair", func(ctx context.Context, tx *session) (int, error) {
		if err := lockRow(ctx, tx, id); err != nil { // one repair at a time
			return 0, err
		}
		wrong, err := wrongSums(ctx, tx, id)
		if err != nil || len(wrong) == 0 {
			return 0, err
		}
		changes := make([]units, len(wrong))
		detail := ""
		for i, w := range wrong {
			changes[i] = units{w.status, w.orders - w.kept}
			detail += fmt.Sprintf("%s %d -> %d units; ", w.status, w.kept, w.orders)
		}
		if err := writeAudit(ctx, tx, s.now(), actor, "repair.sums", id, "", detail); err != nil {
			return 0, err
		}
		return len(wrong), countUnits(ctx, tx, id, changes...)
	})
}
