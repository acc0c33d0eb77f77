// Package reconcile is stage ⑩: it counts a sale to the last unit, with a
// consistent cut through ledger, queue and store, while traffic goes on.
//
//   - reconcile.go: runs and reports; cut.go: the cut of protocol 6; audit.go: counts marks
//   - repair.go: repairs with one safe result
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
	// readDeadline bounds one reading of the ledger or the queue. If one is
	// away, the report fails soon instead of waiting for it.
	readDeadline = 5 * time.Second
	// checkDeadline bounds the checks of marks and rows after the cut.
	checkDeadline = 60 * time.Second
	// auditBudget bounds the count of a product's marks. auditTries is how
	// often the marks of a shard are counted before there is no result.
	auditBudget = 40 * time.Second
	auditTries  = 4
	// maxFindings bounds the findings of one kind in a report.
	maxFindings = 20
	// maxRepairs bounds the repairs of one kind in a run.
	maxRepairs = 1000
)

// Store is the part of the store that a reconciler uses.
type Store interface {
	store.Reconciliations
	Now(ctx context.Context) (time.Time, error)
	Product(ctx context.Context, id uint32) (seckill.Product, error)
}

// Ledger is the part of the ledger that a cut reads.
type Ledger interface {
	Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error)
	Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error)
}

// Recoverer rebuilds a ledger from the store.
type Recoverer interface {
	Recover(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error)
	// RecoverIfLost rebuilds the ledger if it is lost, closed, damaged or
	// behind the store, and reports whether it did.
	RecoverIfLost(ctx context.Context, id uint32) (bool, error)
}

// Reconciler makes reports.
type Reconciler struct {
	Store     Store
	Ledger    Ledger
	Queue     queue.Queue
	Recoverer Recoverer
	Deadline  time.Duration // bounds a cut; after it the result is unknown
	Logger    *slog.Logger
	// OnReport gets every report.
	OnReport func(api.Report)
}

// mode says what a run may change. Each mode includes the one before it.
type mode int

const (
	look    mode = iota // nothing
	rebuild             // the ledger, by a recovery from the store
	mend                // also rows of the store that have one safe repair
)

// Run makes one cut and a report. With repair it then makes every repair that
// has one safe result, and returns a report of a second cut. The first report
// is saved and published before anything is repaired, because a repair removes
// the evidence of its cause.
//
// With repair, a ledger that is lost or damaged is recovered and counted again,
// even if no violation shows it.
func (r *Reconciler) Run(ctx context.Context, product uint32, repair bool, actor string) (api.Report, error) {
	if repair {
		return r.run(ctx, product, mend, actor)
	}
	return r.run(ctx, product, look, actor)
}

// Rebuild is like Run with repair, but it only recovers a ledger that
// contradicts itself or lacks orders of the store. This is safe without an
// operator.
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
	// While a product is deleted, its rows do not add up.
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

// checkRows adds the violations in the store's own rows: stock log, buyers,
// money.
func (r *Reconciler) checkRows(ctx context.Context, c *cut, report *api.Report) error {
	group := c.after.Product.Group
	for _, check := range []struct {
		promise string
		find    func() ([]store.Finding, error)
	}{
		{"I6", func() ([]store.Finding, error) {
			return r.Store.CheckStockLog(ctx, report.ProductID, maxFindings)
		}},
		{"I1", func() ([]store.Finding, error) { return r.Store.CheckTally(ctx, report.ProductID) }},
		{"I3", func() ([]store.Finding, error) { return r.Store.CheckBuyers(ctx, group, maxFindings) }},
		{"I8", func() ([]store.Finding, error) { return r.Store.CheckMoney(ctx, report.ProductID, maxFindings) }},
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

// keep saves and publishes the report.
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
		log.Warn("reconciliation has no result before its deadline")
	case *report.Balanced:
		log.Info("reconciled: balanced")
	default:
		log.Error("reconciliation found violations", "violations", report.Violations)
	}
	return report, nil
}
