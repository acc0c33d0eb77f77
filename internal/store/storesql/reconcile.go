package storesql

import (
	"context"
	"seckill"
	"seckill/internal/store"
)

const (
	// An index covers this query, so it reads no order row.
	sqlUnits = `SELECT status, epoch, shard, release_epoch IS NULL, origin, SUM(quantity) FROM tb_seckill_order
		WHERE product_id = ? GROUP BY status, epoch, shard, release_epoch, origin`
	sqlLetterUnits = `SELECT shard, epoch = ?, COUNT(*), SUM(quantity), MIN(create_time) FROM tb_dead_letter
		WHERE product_id = ? AND closed_time IS NULL GROUP BY 1, 2`
	sqlOpenChanges = `SELECT COUNT(*) FROM tb_stock_change WHERE status = 'open' AND product_id = ?`
	sqlChanges     = `SELECT COUNT(*) FROM tb_stock_change WHERE product_id = ?`
	sqlOwedCount   = `SELECT COUNT(*) FROM tb_seckill_order WHERE release_epoch IS NOT NULL AND release_time IS NOT NULL AND product_id = ?`

	sqlSaveReconciliation = `INSERT INTO tb_reconciliation (product_id, create_time, balanced, body) VALUES (?, ?, ?, ?)`
	sqlReconciliations    = `SELECT id, product_id, create_time, balanced, body FROM tb_reconciliation`
	sqlUncountedEnds      = `SELECT id FROM tb_seckill_product WHERE uncounted = 1 AND deleting = 0 ORDER BY ended_time, id LIMIT ?`
	// A report in the same millisecond as the end may have begun before the end.
	sqlCounted = `UPDATE tb_seckill_product SET uncounted = 0 WHERE id = ? AND uncounted = 1 AND ended_time < ?`
)

func (s *Store) Figures(ctx context.Context, id uint32) (store.Figures, error) {
	var f store.Figures
	err := s.snapshot(ctx, "read figures", func(ctx context.Context, r *session) error {
		p, err := readProduct(ctx, r, id)
		if err != nil {
			return err
		}
		f.Product = p.Product
		f.Shards = make([]store.ShardFigures, p.Shards)
		for i := range f.Shards {
			f.Shards[i].Index = i
		}
		if err := countOrders(ctx, r, &f); err != nil {
			return err
		}
		if err := countLetters(ctx, r, &f); err != nil {
			return err
		}
		if _, err := r.row(ctx, sqlOpenChanges, []any{id}, &f.OpenChanges); err != nil {
			return err
		}
		if _, err := r.row(ctx, sqlChanges, []any{id}, &f.Changes); err != nil {
			return err
		}
		_, err = r.row(ctx, sqlOwedCount, []any{id}, &f.ReleasesDue)
		return err
	})
	if err != nil {
		return store.Figures{}, err
	}
	return f, nil
}

func countOrders(ctx context.Context, r *session, f *store.Figures) error {
	var all seckill.Counted
	err := eachUnits(ctx, r, f.Product.ID, func(u *orderSum) {
		u.addTo(&all)
		// An order that the store sold has no epoch, unless the ledger has sold the same
		// number: then it has the epoch of the mark to release.
		present := u.marked() || u.epoch == f.Product.Epoch
		if !present || u.shard < 0 || u.shard >= len(f.Shards) {
			return
		}
		at := &f.Shards[u.shard]
		at.Rows += u.units
		if !u.marked() {
			at.Dead += u.units
			if u.settled {
				at.SettledDead += u.units
			}
		}
	})
	f.Pending, f.Paid, f.Cancelled, f.Failed, f.Refunded = all.Pending, all.Paid, all.Cancelled, all.Failed, all.Refunded
	return err
}

// orderSum is the units of a product's orders with the same status, epoch, shard and origin.
type orderSum struct {
	knownOrder
	epoch   uint64
	shard   int
	settled bool
	units   int64
}

func (u *orderSum) addTo(c *seckill.Counted) {
	switch u.status {
	case seckill.OrderPending:
		c.Pending += u.units
	case seckill.OrderPaid:
		c.Paid += u.units
	case seckill.OrderCancelled:
		c.Cancelled += u.units
	case seckill.OrderFailed:
		c.Failed += u.units
	case seckill.OrderRefunded:
		c.Refunded += u.units
	}
}

// eachUnits calls each with the sums of all orders of a product.
func eachUnits(ctx context.Context, r *session, product uint32, each func(*orderSum)) error {
	return r.query(ctx, sqlUnits, []any{product}, func(row scanner) error {
		var u orderSum
		err := row.Scan(&u.status, &u.epoch, &u.shard, &u.settled, &u.origin, &u.units)
		if err == nil {
			each(&u)
		}
		return err
	})
}

func countLetters(ctx context.Context, r *session, f *store.Figures) error {
	return r.query(ctx, sqlLetterUnits, []any{f.Product.Epoch, f.Product.ID}, func(row scanner) error {
		var shard int
		var present bool
		var count, units, oldest int64
		if err := row.Scan(&shard, &present, &count, &units, &oldest); err != nil {
			return err
		}
		f.Letters += count
		f.LetterUnits += units
		if at := fromMillis(oldest); f.OldestLetter.IsZero() || at.Before(f.OldestLetter) {
			f.OldestLetter = at
		}
		if present && shard >= 0 && shard < len(f.Shards) {
			f.Shards[shard].Rows += units
		}
		return nil
	})
}

// SaveReconciliation stores a report under a new id. A report without a time gets the store's.
func (s *Store) SaveReconciliation(ctx context.Context, report store.Reconciliation) (store.Reconciliation, error) {
	if report.At.IsZero() {
		report.At = s.now()
	}
	report.At = fromMillis(millis(report.At))
	return changed(ctx, s, "report", func(ctx context.Context, tx *session) (_ store.Reconciliation, err error) {
		report.ID, err = tx.insert(ctx, sqlSaveReconciliation, report.ProductID, millis(report.At), report.Balanced, report.Body)
		if err == nil {
			_, err = tx.exec(ctx, sqlCounted, report.ProductID, millis(report.At))
		}
		return report, err
	})
}

func (s *Store) Reconciliations(ctx context.Context, product uint32, before int64, limit int) ([]store.Reconciliation, error) {
	query, args := s.dialect.pageOfReports(product, before, limit)
	return listed(ctx, s, "list reports", query, args, func(row scanner, report *store.Reconciliation) error {
		return row.Scan(&report.ID, &report.ProductID, millisTime{&report.At}, &report.Balanced, &report.Body)
	})
}

func (d *dialect) pageOfReports(product uint32, before int64, limit int) (string, []any) {
	var where conditions
	index := ""
	if before != 0 {
		where.add("id < ?", before)
	}
	if product != 0 {
		index = "ix_reconciliation_product"
		where.add("product_id = ?", product)
	}
	return sqlReconciliations + d.by(index) + where.text() + " ORDER BY id DESC LIMIT ?", where.with(limit)
}

func (s *Store) UncountedEnds(ctx context.Context, limit int) ([]uint32, error) {
	return listed(ctx, s, "list uncounted ends", sqlUncountedEnds, []any{limit}, scanValue[uint32])
}
