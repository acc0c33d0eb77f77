package reconcile

import (
	"context"
	"errors"

	"seckill"
	"seckill/internal/ledger"
)

// audit has the ledger read out its marks, counts them, and compares them with
// the store's orders. Figures that agree say nothing about a mark that somebody
// deleted, or gave to another buyer. Where there are too many marks or orders to
// read in auditBudget there is no verdict on them; the report's orders_compared
// says so.
func (r *Reconciler) audit(ctx context.Context, c *cut) error {
	p := &c.after.Product
	if p.Epoch == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, auditBudget)
	defer cancel()
	compared := newComparison(r, p)
	err := compared.readRows(within, rowsOf(&c.after))
	if err == nil && !p.SoldByStore() {
		if err = r.auditMarks(within, c, compared); err == nil {
			err = compared.judge(within)
		}
	}
	if errors.Is(within.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return err
	}
	// A rebuild in the middle of it would explain any difference.
	now, err := r.Store.Product(ctx, p.ID)
	if err != nil || now.Epoch != p.Epoch || now.Rebuilding {
		return err
	}
	c.compared, c.differences = compared.compared, compared.differences
	return nil
}

// auditMarks reads the marks of every shard, after the rows.
func (r *Reconciler) auditMarks(ctx context.Context, c *cut, compared *comparison) error {
	p := &c.after.Product
	for i := range p.Shards {
		shard := ledger.Shard{Product: p.ID, Group: p.Group, Index: i}
		counted, err := r.Ledger.Audit(ctx, shard, func(m ledger.Mark) { compared.meet(i, m) })
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "audit ledger: %w", err)
		}
		compared.whole = compared.whole && counted.Epoch == p.Epoch
		if differs(counted) {
			if counted, err = r.recount(ctx, shard, counted); err != nil {
				return seckill.Errorf(seckill.CodeBusy, "audit ledger: %w", err)
			}
		}
		if differs(counted) {
			if c.audits == nil {
				c.audits = make(map[int]ledger.Audit)
			}
			c.audits[i] = counted
		}
	}
	return nil
}

// recount counts until two counts in a row agree upon a difference: a mark may
// be read twice.
func (r *Reconciler) recount(ctx context.Context, shard ledger.Shard, last ledger.Audit) (ledger.Audit, error) {
	for range auditTries - 1 {
		counted, err := r.Ledger.Audit(ctx, shard, func(ledger.Mark) {})
		if err != nil {
			return ledger.Audit{}, err
		}
		if counted.Steady && (!differs(counted) || counted == last) {
			return counted, nil
		}
		last = counted
	}
	return ledger.Audit{}, nil
}

func differs(a ledger.Audit) bool {
	return a.Epoch != 0 && a.Steady && (a.Units != a.Marked || a.Orders != a.Live)
}
