package storesql

import (
	"context"

	"seckill/internal/store"
)

const sqlStockLog = `SELECT seq, quantity, before_stock, after_stock, type FROM tb_stock_log WHERE product_id = ? ORDER BY seq`

// CheckStockLog walks the product's stock log (I6): the rows are a chain that ends at the
// product's stock.
func (s *Store) CheckStockLog(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	return s.check(ctx, "check stock log", limit, func(ctx context.Context, r *session, f *findings) error {
		p, err := readProduct(ctx, r, id)
		if err != nil {
			return err
		}
		var l, last stockLogRow
		into := []any{&l.seq, &l.quantity, &l.before, &l.after, &l.kind}
		err = r.query(ctx, sqlStockLog, []any{id}, func(row scanner) error {
			if err := row.Scan(into...); err != nil {
				return err
			}
			err := l.check(f, &last)
			last = l
			return err
		})
		if err != nil {
			return err
		}
		if last.seq != p.logSeq {
			if err := f.add(p.logSeq, last.seq, "last seq of the stock log"); err != nil {
				return err
			}
		}
		if last.after != p.Stock {
			return f.add(last.after, p.Stock, "the product's stock, by the last row of the stock log")
		}
		return nil
	})
}

type stockLogRow struct {
	seq, quantity, before, after int64
	kind                         int
}

// check compares a row with the previous row, and its fields with each other.
func (l *stockLogRow) check(f *findings, last *stockLogRow) error {
	if l.seq != last.seq+1 {
		if err := f.add(last.seq+1, l.seq, "seq of the stock log"); err != nil {
			return err
		}
	}
	if l.before != last.after {
		if err := f.add(last.after, l.before, "before_stock of stock log %d", l.seq); err != nil {
			return err
		}
	}
	want := l.before + l.quantity
	if l.kind == logSold {
		want = l.before - l.quantity
	}
	if l.after != want {
		return f.add(want, l.after, "after_stock of stock log %d, type %d, quantity %d", l.seq, l.kind, l.quantity)
	}
	return nil
}
