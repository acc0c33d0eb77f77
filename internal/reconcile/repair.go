package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/stats"
	"seckill/internal/store"
)

// repair mends what has one safe direction, in a bounded way: buyer records
// follow the live orders; recorded money that nobody owes back is owed; entries
// that the queue has and nobody gets are delivered; a ledger that contradicts the
// store is recovered from it.
//
// Each of them takes the store's word. Of a store that contradicts itself, in its
// stock, its orders or its stock log, nobody can say which word is true: a unit
// that somebody wrote into the stock would be sold, and an order whose status
// somebody altered be refunded. There nothing is mended, and a person judges.
func (r *Reconciler) repair(ctx context.Context, product uint32, report stats.Report, actor string) ([]string, error) {
	if broken(report, "I1") || broken(report, "I2") || broken(report, "I6") {
		r.Logger.Error("nothing is repaired: the store contradicts itself", "product", product)
		return nil, nil
	}
	who := store.Actor{Name: actor, Reason: "reconcile repair"}
	var done []string
	if broken(report, "I3") {
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
	if broken(report, "I8") {
		n, err := r.Store.RepairMoney(ctx, product, repairMost, who)
		if err != nil {
			return done, err
		}
		if n > 0 {
			done = append(done, fmt.Sprintf("%d refunds owed that nobody owed, or tried again", n))
		}
	}
	if broken(report, "I4") {
		mended, err := r.repairQueue(ctx, product, who)
		if err != nil {
			return done, err
		}
		done = append(done, mended...)
	}
	drifted, err := r.ledgerDrifted(ctx, product)
	if err != nil || !drifted {
		return done, err
	}
	p, err := r.Recoverer.Recover(ctx, product, who)
	if err != nil {
		return done, err
	}
	return append(done, fmt.Sprintf("ledger recovered from the store under epoch %d", p.Epoch)), nil
}

// repairQueue has entries that were with nobody delivered again, and no longer
// waits for those that are gone: the ledger then holds what no entry will
// confirm, and its recovery offers again what instances remember of it.
func (r *Reconciler) repairQueue(ctx context.Context, product uint32, who store.Actor) (done []string, err error) {
	examining, ok := r.Queue.(queue.Examining)
	if !ok {
		return nil, nil
	}
	strays, err := examining.Examine(ctx, product, true)
	if errors.Is(err, queue.ErrLost) { // which a recovery mends: others have to be told
		p, err := r.Recoverer.Recover(ctx, product, who)
		if err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("a stream of the queue was lost, and every product is recovered, this one under epoch %d", p.Epoch)}, nil
	}
	if err != nil {
		return nil, seckill.Errorf(seckill.CodeBusy, "mend queue: %w", err)
	}
	if strays.Alone > 0 {
		done = append(done, fmt.Sprintf("%d entries of the queue are delivered again", strays.Alone))
	}
	if strays.Gone > 0 {
		done = append(done, fmt.Sprintf("%d entries that are gone from the queue are no longer waited for", strays.Gone))
	}
	return done, nil
}

// ledgerDrifted makes a second cut: a new epoch is spent only on drift that
// shows twice, over a store that is sound itself.
func (r *Reconciler) ledgerDrifted(ctx context.Context, product uint32) (bool, error) {
	c, err := r.cut(ctx, product)
	if err != nil || !c.settled {
		return false, err
	}
	if slices.ContainsFunc(c.differences, func(d difference) bool { return d.ofStore }) {
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

func broken(report stats.Report, promise string) bool {
	for _, v := range report.Violations {
		if v.Promise == promise {
			return true
		}
	}
	return false
}
