package reconcile

import (
	"context"
	"errors"

	"seckill"
	"seckill/internal/ledger"
)

// audit has the ledger count its marks. Figures that agree with the store say
// nothing about a mark that somebody deleted, whose buyer may buy again. Where
// orders come and go all the while, or there are too many marks to count in
// auditBudget, there is no verdict: the count shows it when the crowd is gone.
func (r *Reconciler) audit(ctx context.Context, c *cut) error {
	auditing, ok := r.Ledger.(ledger.Auditing)
	p := &c.after.Product
	if !ok || !p.HasLedger() {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, auditBudget)
	defer cancel()
	for i := range p.Shards {
		counted, err := auditShard(within, auditing, ledger.Shard{Product: p.ID, Group: p.Group, Index: i})
		if errors.Is(within.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return seckill.Errorf(seckill.CodeBusy, "audit ledger: %w", err)
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

// auditShard counts until it is certain, a few times: a difference is one that
// two counts in a row agree upon.
func auditShard(ctx context.Context, auditing ledger.Auditing, shard ledger.Shard) (last ledger.Audit, err error) {
	for range auditTries {
		counted, err := auditing.Audit(ctx, shard)
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
	return a.Steady && (a.Units != a.Marked || a.Orders != a.Live)
}
