package reconcile

import (
	"context"
	"errors"

	"seckill"
	"seckill/internal/ledger"
)

// audit counts the marks of the ledger. Figures may be balanced although a mark
// is gone. If the marks cannot be counted within auditBudget, there is no
// result for them.
func (r *Reconciler) audit(ctx context.Context, c *cut) error {
	p := &c.after.Product
	if p.Epoch == 0 || p.SoldByStore() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, auditBudget)
	defer cancel()
	err := r.auditMarks(within, c)
	if errors.Is(within.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// auditMarks counts the marks of every shard.
func (r *Reconciler) auditMarks(ctx context.Context, c *cut) error {
	p := &c.after.Product
	c.audits = make(map[int]ledger.Audit)
	for i := range p.Shards {
		counted, err := r.count(ctx, ledger.Shard{Product: p.ID, Group: p.Group, Index: i})
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "audit ledger: %w", err)
		}
		if differs(counted) {
			c.audits[i] = counted
		}
	}
	return nil
}

// count counts the marks of a shard. It reports a difference only if two counts
// in a row show the same one, because a count may read a mark twice.
func (r *Reconciler) count(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	last, err := r.Ledger.Audit(ctx, shard)
	if err != nil || !differs(last) {
		return last, err
	}
	for range auditTries - 1 {
		counted, err := r.Ledger.Audit(ctx, shard)
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
