// Package reconcile is stage ⑩: it counts a sale to the last unit, at a cut
// through ledger, queue and store, while traffic goes on.
package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/store"
)

const (
	cutPoll = 20 * time.Millisecond
	// readDeadline bounds one reading of the ledger, or of the queue. Who asks for a
	// report while they are away is told so, and does not wait for their return.
	readDeadline = 5 * time.Second
	// checkDeadline bounds the walks over marks and rows that follow the cut.
	checkDeadline = 60 * time.Second
	// auditBudget is the time in which the marks of a product are counted, and
	// auditTries how often those of a shard are counted before there is no verdict.
	auditBudget = 40 * time.Second
	auditTries  = 4
	// findingsMost bounds the findings of one kind in a report.
	findingsMost = 20
	// repairMost bounds what one run mends of one kind.
	repairMost = 1000
)

// Store is what a cut reads, and where reports are kept.
type Store interface {
	store.Reconciliations
	Now(ctx context.Context) (time.Time, error)
	Product(ctx context.Context, id uint32) (seckill.Product, error)
}

// Ledger is what a cut reads.
type Ledger interface {
	Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error)
	Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error)
}

// Recoverer rebuilds a drifted ledger from the store's truth.
type Recoverer interface {
	Recover(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	// RecoverIfLost does so if the ledger is lost, closed, damaged or behind the
	// store, and reports whether it was.
	RecoverIfLost(ctx context.Context, id uint32) (bool, error)
}

// Reconciler makes reports.
type Reconciler struct {
	Store     Store
	Ledger    Ledger
	Queue     queue.Queue
	Recoverer Recoverer
	Deadline  time.Duration // after which a cut says that it cannot tell
	Logger    *slog.Logger
	// OnReport sees every report.
	OnReport func(api.Report)
}

// mode is what a run may change, each with what the one before it may.
type mode int

const (
	look    mode = iota // nothing
	rebuild             // the ledger, which is recovered from the store
	mend                // also rows of the store that have one safe direction
)

// Run makes one cut and reports. With repair it then mends what has one safe
// direction, and reports the cut after the mending. What was found is kept and
// told before anything is mended: a repair leaves no trace of its cause.
//
// A ledger that is lost or damaged without a violation to show for it, because no
// cut can tell anything over it or none looks there, is recovered, and counted
// again.
func (r *Reconciler) Run(ctx context.Context, product uint32, repair bool, actor string) (api.Report, error) {
	if repair {
		return r.run(ctx, product, mend, actor)
	}
	return r.run(ctx, product, look, actor)
}

// Rebuild is Run that recovers a ledger which contradicts itself, or lacks what
// the store has, and mends nothing else. A loss has one answer, for which no
// operator is waited for.
func (r *Reconciler) Rebuild(ctx context.Context, product uint32, actor string) (api.Report, error) {
	return r.run(ctx, product, rebuild, actor)
}

func (r *Reconciler) run(ctx context.Context, product uint32, may mode, actor string) (api.Report, error) {
	found, err := r.report(ctx, product)
	if may > look && (err != nil || found.Balanced == nil || *found.Balanced) {
		lost, failed := r.Recoverer.RecoverIfLost(ctx, product)
		if failed != nil {
			return found, fmt.Errorf("repair: %w", errors.Join(err, failed))
		}
		if lost {
			if found, err = r.report(ctx, product); err == nil {
				found.Repaired = append(found.Repaired, "the ledger was lost or damaged, and recovered from the store")
			}
		}
	}
	if err != nil {
		return found, err
	}
	if found, err = r.keep(ctx, found); err != nil || may == look || found.Balanced == nil || *found.Balanced {
		return found, err
	}
	repaired, err := r.repair(ctx, product, found, may, actor)
	if err != nil {
		return found, fmt.Errorf("repair: %w", err)
	}
	if len(repaired) == 0 {
		return found, nil
	}
	mended, err := r.report(ctx, product)
	if err != nil {
		return mended, err
	}
	mended.Repaired = append(found.Repaired, repaired...)
	return r.keep(ctx, mended)
}

func (r *Reconciler) report(ctx context.Context, product uint32) (api.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Deadline+checkDeadline)
	defer cancel()
	at, err := r.Store.Now(ctx)
	if err != nil {
		return api.Report{}, err
	}
	report := api.Report{ProductID: product, At: at}
	c, err := r.cut(ctx, product)
	if err != nil {
		return report, err
	}
	report.Test = c.after.Product.Test
	report.Violations = c.violations()
	if err := r.checkRows(ctx, c, &report); err != nil {
		return report, err
	}
	// Rows of a product that is deleted meanwhile do not add up.
	if _, err := r.Store.Product(ctx, product); err != nil {
		return report, err
	}
	report.Figures = c.figures()
	switch {
	case len(report.Violations) > 0:
		report.Balanced = new(bool)
	case c.settled:
		yes := true
		report.Balanced = &yes
	}
	return report, nil
}

// checkRows adds what the store's own rows say: stock log, buyers, money.
func (r *Reconciler) checkRows(ctx context.Context, c *cut, report *api.Report) error {
	group := c.after.Product.Group
	for _, check := range []struct {
		promise string
		find    func() ([]store.Finding, error)
	}{
		{"I6", func() ([]store.Finding, error) {
			return r.Store.CheckStockLog(ctx, report.ProductID, findingsMost)
		}},
		{"I1", func() ([]store.Finding, error) { return r.Store.CheckTally(ctx, report.ProductID) }},
		{"I3", func() ([]store.Finding, error) { return r.Store.CheckBuyers(ctx, group, findingsMost) }},
		{"I8", func() ([]store.Finding, error) { return r.Store.CheckMoney(ctx, report.ProductID, findingsMost) }},
	} {
		findings, err := check.find()
		if err != nil {
			return err
		}
		for _, f := range findings {
			report.Violations = append(report.Violations, api.Violation{
				Promise: check.promise, Expected: f.Expected, Found: f.Found, Detail: f.Detail,
			})
		}
	}
	return nil
}

// keep saves the report and tells of it.
func (r *Reconciler) keep(ctx context.Context, report api.Report) (api.Report, error) {
	body, err := json.Marshal(report)
	if err != nil {
		return report, err
	}
	saved, err := r.Store.SaveReconciliation(ctx, store.Reconciliation{
		ProductID: report.ProductID, At: report.At, Balanced: report.Balanced, Body: body,
	})
	if err != nil {
		return report, fmt.Errorf("save report: %w", err)
	}
	report.ID = saved.ID
	r.OnReport(report)
	log := r.Logger.With("product", report.ProductID, "report", report.ID)
	switch {
	case report.Balanced == nil:
		log.Warn("reconciliation could not tell before its deadline")
	case *report.Balanced:
		log.Info("reconciled: balanced")
	default:
		log.Error("reconciliation found violations", "violations", report.Violations)
	}
	return report, nil
}
