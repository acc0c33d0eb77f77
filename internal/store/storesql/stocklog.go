package storesql

import (
	"context"
	"database/sql"

	"seckill"
	"seckill/internal/store"
)

const (
	sqlStockLog = `SELECT seq, order_no, quantity, before_stock, after_stock, type FROM tb_stock_log WHERE product_id = ? ORDER BY seq`

	// In no order, for none is needed: where order_no is the table's key,
	// ix_order_figures has all of this, and no order row is read.
	sqlOrderUnits = `SELECT order_no, quantity, status FROM tb_seckill_order WHERE product_id = ?`
)

// CheckStockLog walks the product's stock log (I6): the rows form a chain that
// ends at the product's stock, and those that name orders are, one for one,
// what the orders took and gave back.
func (s *Store) CheckStockLog(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	return s.check(ctx, "check stock log", limit, func(ctx context.Context, r *session, f *findings) error {
		sums := newUnitSums()
		if err := checkChain(ctx, r, id, sums, f); err != nil {
			return err
		}
		if err := eachOrderUnits(ctx, r, id, sums.subtract); err != nil {
			return err
		}
		differing := sums.differing(limit)
		if len(differing) == 0 {
			return nil
		}
		return nameDifferences(ctx, r, id, sums, differing, f)
	})
}

// stockLogRow is a row of the stock log. Its number is good until the next row.
type stockLogRow struct {
	seq, quantity, before, after int64
	kind                         int
	orderNo                      sql.RawBytes
}

func eachStockLog(ctx context.Context, r *session, product uint32, each func(*stockLogRow) error) error {
	var l stockLogRow
	into := []any{&l.seq, &l.orderNo, &l.quantity, &l.before, &l.after, &l.kind}
	return r.query(ctx, sqlStockLog, []any{product}, func(row scanner) error {
		if err := row.Scan(into...); err != nil {
			return err
		}
		return each(&l)
	})
}

// checkChain compares each row with the one before it, and the last with the
// product. It adds to sums what the rows say of orders.
func checkChain(ctx context.Context, r *session, product uint32, sums *unitSums, f *findings) error {
	p, err := readProduct(ctx, r, product)
	if err != nil {
		return err
	}
	var last stockLogRow
	err = eachStockLog(ctx, r, product, func(l *stockLogRow) error {
		sums.add(l)
		err := l.check(f, &last)
		last = *l
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
}

// check compares a row with the one before it and with itself.
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
		if err := f.add(want, l.after, "after_stock of stock log %d, type %d, quantity %d", l.seq, l.kind, l.quantity); err != nil {
			return err
		}
	}
	return l.checkKind(f)
}

// ofOrder reports whether the row is to name an order.
func (l *stockLogRow) ofOrder() bool { return l.kind == logSold || l.kind == logReturned }

// checkKind is about rows that are not compared with orders.
func (l *stockLogRow) checkKind(f *findings) error {
	switch {
	case l.ofOrder():
		return nil
	case l.kind != logOperator:
		return f.add("1, 2 or 3", l.kind, "type of stock log %d", l.seq)
	case l.orderNo != nil:
		return f.add("no order", string(l.orderNo), "order_no of stock log %d, which is an operator's change", l.seq)
	}
	return nil
}

// orderUnits is what an order says of units. Its number is good until the next.
type orderUnits struct {
	orderNo  sql.RawBytes
	quantity int64
	status   seckill.OrderStatus
}

func eachOrderUnits(ctx context.Context, r *session, product uint32, each func(*orderUnits)) error {
	var o orderUnits
	into := []any{&o.orderNo, &o.quantity, &o.status}
	return r.query(ctx, sqlOrderUnits, []any{product}, func(row scanner) error {
		err := row.Scan(into...)
		if err == nil {
			each(&o)
		}
		return err
	})
}

// logged reports whether the order should have a row of the kind in the stock
// log, whoever sold it. One that failed never took its units.
func (o *orderUnits) logged(kind int) bool {
	switch o.status {
	case seckill.OrderPending, seckill.OrderPaid:
		return kind == logSold
	case seckill.OrderCancelled, seckill.OrderRefunded:
		return kind == logSold || kind == logReturned
	}
	return false
}
