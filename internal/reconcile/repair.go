package reconcile

import (
	"context"
	"fmt"

	"seckill/internal/api"
	"seckill/internal/store"
)

// repair makes the repairs that have one safe result, up to a bound. Stored
// sums and buyer records are set from the live orders. Failed refunds are tried
// again. A ledger that contradicts the store is recovered from it; in mode
// rebuild only this.
//
// Every repair trusts the store. If the store contradicts itself, in its stock,
// orders or stock log, nothing is repaired and an operator must decide. A
// repair could sell a unit that was added to the stock by hand, or refund an
// order whose status was changed by hand.
func (r *Reconciler) repair(ctx context.Context, product uint32, report api.Report, may mode, actor string) ([]string, error) {
	// A wrong sum alone is no contradiction: the orders are the truth.
	sums, err := r.Store.CheckTally(ctx, product)
	if err != nil {
		return nil, err
	}
	if broken(report, "I1") > len(sums) || broken(report, "I2")+broken(report, "I6") > 0 {
		r.Logger.Error("nothing is repaired: the store contradicts itself", "product", product)
		return nil, nil
	}
	who := store.Actor{Name: actor, Reason: "reconcile repair"}
	var done []string
	if may == mend && len(sums) > 0 {
		n, err := r.Store.RepairTally(ctx, product, who)
		if err != nil {
			return done, err
		}
		done = append(done, fmt.Sprintf("%d kept sums set to what the orders say", n))
	}
	if may == mend && broken(report, "I3") > 0 {
		figures, err := r.Store.Figures(ctx, product)
		if err != nil {
			return done, err
		}
		n, err := r.Store.RepairBuyers(ctx, figures.Product.Group, maxRepairs, who)
		if err != nil {
			return done, err
		}
		if n > 0 {
			done = append(done, fmt.Sprintf("%d buyer records set to what their live orders say", n))
		}
	}
	if may == mend && broken(report, "I8") > 0 {
		n, err := r.Store.RetryRefunds(ctx, product, maxRepairs, who)
		if err != nil {
			return done, err
		}
		if n > 0 {
			done = append(done, fmt.Sprintf("%d refunds tried again", n))
		}
	}
	drifted, err := r.ledgerDrifted(ctx, product, may)
	if err != nil || !drifted {
		return done, err
	}
	p, err := r.Recoverer.Recover(ctx, product, who)
	if err != nil {
		return done, err
	}
	return append(done, fmt.Sprintf("ledger recovered from the store under epoch %d", p.Epoch)), nil
}

// ledgerDrifted makes a second cut. A new epoch is opened only if both cuts
// show the drift and the store is consistent.
func (r *Reconciler) ledgerDrifted(ctx context.Context, product uint32, may mode) (bool, error) {
	c, err := r.cut(ctx, product)
	if err != nil || !c.settled {
		return false, err
	}
	if may == rebuild && !c.ownFault() {
		return false, nil
	}
	drifted := false
	for _, v := range c.violations() {
		switch v.Promise {
		case "I1", "I2":
			return false, nil // the store itself is inconsistent: it cannot be trusted for a recovery
		case "I3", "I5":
			drifted = true
		}
	}
	return drifted, nil
}

// broken counts the violations of a promise.
func broken(report api.Report, promise string) (n int) {
	for _, v := range report.Violations {
		if v.Promise == promise {
			n++
		}
	}
	return n
}
