package reconcile

import (
	"context"
	"fmt"

	"seckill/internal/api"
	"seckill/internal/store"
)

// repair mends what has one safe direction, in a bounded way: kept sums and buyer
// records follow the live orders; refunds that were given up are tried again; a ledger
// that contradicts the store is recovered from it. With mode rebuild, only that.
//
// Each of them takes the store's word. Of a store that contradicts itself, in its
// stock, its orders or its stock log, nobody can say which word is true: a unit
// that somebody wrote into the stock would be sold, and an order whose status
// somebody altered be refunded. There nothing is mended, and a person judges.
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
		n, err := r.Store.RepairBuyers(ctx, figures.Product.Group, repairMost, who)
		if err != nil {
			return done, err
		}
		if n > 0 {
			done = append(done, fmt.Sprintf("%d buyer records set to what their live orders say", n))
		}
	}
	if may == mend && broken(report, "I8") > 0 {
		n, err := r.Store.RetryRefunds(ctx, product, repairMost, who)
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

// ledgerDrifted makes a second cut: a new epoch is spent only on drift that
// shows twice, over a store that is sound itself.
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
			return false, nil // the store itself does not add up: no truth to recover from
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
