package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/reconcile"
	"seckill/internal/store"
	"seckill/test/rig"
)

// reconcileRig is a rig with a reconciler.
type reconcileRig struct {
	*rig.Rig
	*reconcile.Reconciler
	reports []api.Report
}

func newReconcileRig(t *testing.T) *reconcileRig {
	t.Helper()
	t.Parallel()
	o := &reconcileRig{Rig: rig.New(t)}
	o.Reconciler = &reconcile.Reconciler{
		Store: o.Rig.Store, Ledger: o.Rig.Ledger, Queue: o.Rig.Queue, Recoverer: o.Lifecycle, Deadline: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler), OnReport: func(r api.Report) { o.reports = append(o.reports, r) },
	}
	return o
}

func (o *reconcileRig) run(t *testing.T, repair bool) api.Report {
	t.Helper()
	report, err := o.Run(t.Context(), 1, repair, "operator")
	rig.Must(t, err)
	return report
}

// busy makes a sale with orders in every state: confirmed, queued, parked,
// paid, cancelled (released or not), with stock added and removed.
func (o *reconcileRig) busy(t *testing.T) seckill.Product {
	t.Helper()
	p := o.Open(t, 1, 20, rig.Limit(2))
	nos := o.Buy(t, p, "a", "b", "c", "d")
	o.ConfirmAll(t)
	for _, no := range nos[:2] {
		_, err := o.Rig.Store.Cancel(t.Context(), no, "test", rig.Operator)
		rig.Must(t, err)
		if no == nos[0] {
			rig.Must(t, o.releaser().Round(t.Context()))
		}
	}
	o.pay(t, nos[2], "t1")
	for id, delta := range map[string]int64{"up": 5, "down": -3} {
		_, err := o.Lifecycle.ChangeStock(t.Context(), 1, delta, id, rig.Operator)
		rig.Must(t, err)
	}
	return p
}

func (o *reconcileRig) releaser() *order.Releaser {
	return &order.Releaser{Store: o.Rig.Store, Lanes: o.Lanes, OnReleased: func(uint32) {}, OnTrouble: func(uint32, error) {}}
}

func (o *reconcileRig) pay(t *testing.T, no seckill.OrderNo, trade string) {
	t.Helper()
	_, err := o.Rig.Store.RecordPayment(t.Context(), payment.Notice{
		Provider: "purse", TradeNo: trade, OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: o.Time.Now(),
	})
	rig.Must(t, err)
}

func promises(r api.Report) []string {
	var found []string
	for _, v := range r.Violations {
		if !slices.Contains(found, v.Promise) {
			found = append(found, v.Promise)
		}
	}
	slices.Sort(found)
	return found
}

func balanced(t *testing.T, r api.Report) {
	t.Helper()
	if r.Balanced == nil || !*r.Balanced || len(r.Violations) != 0 {
		t.Fatalf("balanced %v, violations %+v, figures %v", r.Balanced, r.Violations, r.Figures)
	}
}

func TestRun_SaleAtRestIsBalanced(t *testing.T) {
	o := newReconcileRig(t)
	o.busy(t)
	balanced(t, o.run(t, false))
	rig.Must(t, o.releaser().Round(t.Context()))
	balanced(t, o.run(t, true))
	_, err := o.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	report := o.run(t, false)
	balanced(t, report)
	if report.Figures["offered"] != 22 || report.Figures["ledger_reserved"] != 2 || len(o.reports) != 3 {
		t.Errorf("figures are %v after %d reports", report.Figures, len(o.reports))
	}
	kept, err := o.Rig.Store.Reconciliations(t.Context(), 1, 0, 10)
	rig.Must(t, err)
	if len(kept) != 3 || kept[0].ID != report.ID || kept[0].Balanced == nil || !*kept[0].Balanced {
		t.Errorf("kept %+v", kept)
	}
}

func TestRun_ProductBeforePreheatIsBalanced(t *testing.T) {
	o := newReconcileRig(t)
	o.Product(t, 1, 20)
	balanced(t, o.run(t, false))
	_, err := o.Run(t.Context(), 9, false, "operator")
	rig.Refused(t, err, seckill.CodeNotFound)
}

// Drift in each place is reported under the promise that it breaks.
func TestRun_FindsDriftInEveryPlace(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, o *reconcileRig)
		want   string
	}{
		"a ledger that has a unit too many": {func(_ *testing.T, o *reconcileRig) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Available++ })
		}, "I5"},
		"a wrong allotment": {func(_ *testing.T, o *reconcileRig) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Allotted++; f.Available++ })
		}, "I5"},
		"a mark without an order": {func(_ *testing.T, o *reconcileRig) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Marked++; f.Available-- })
		}, "I3"},
		"an order without a mark": {func(_ *testing.T, o *reconcileRig) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Marked--; f.Available++ })
		}, "I3"},
		"units sent and not received": {func(_ *testing.T, o *reconcileRig) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Sent++; f.Available-- })
		}, "I5"},
		"a limit that is not the product's": {func(_ *testing.T, o *reconcileRig) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Limit = 1 })
		}, "I3"},
		"stock that is gone": {func(t *testing.T, o *reconcileRig) {
			o.Exec(t, `UPDATE tb_seckill_product SET stock = stock - 1 WHERE id = 1`)
		}, "I1 I6"},
		"more orders than offered": {func(t *testing.T, o *reconcileRig) {
			o.Exec(t, `UPDATE tb_seckill_product SET offered = 1 WHERE id = 1`)
		}, "I1 I2 I5"},
		"an order that lost its row": {func(t *testing.T, o *reconcileRig) {
			o.Exec(t, `DELETE FROM tb_seckill_order WHERE user_id = CAST('d' AS BLOB)`)
		}, "I1 I3"},
		"a buyer record that is too low": {func(t *testing.T, o *reconcileRig) {
			o.Exec(t, `DELETE FROM tb_user_seckill WHERE user_id = CAST('d' AS BLOB)`)
		}, "I3"},
		"a stock log with a gap": {func(t *testing.T, o *reconcileRig) {
			o.Exec(t, `DELETE FROM tb_stock_log WHERE product_id = 1 AND seq = 2`)
		}, "I6"},
		"a paid order without its payment": {func(t *testing.T, o *reconcileRig) {
			o.Exec(t, `DELETE FROM tb_payment WHERE trade_no = 't1'`)
		}, "I8"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			o.busy(t)
			rig.Must(t, o.releaser().Round(t.Context())) // at rest: nothing is hidden by the bracket
			c.damage(t, o)
			report := o.run(t, false)
			if report.Balanced == nil || *report.Balanced || strings.Join(promises(report), " ") != c.want {
				t.Errorf("balanced %v, violations %+v, want %s", report.Balanced, report.Violations, c.want)
			}
			if len(report.Repaired) != 0 {
				t.Errorf("repaired %v without repair", report.Repaired)
			}
		})
	}
}

func TestRun_UnknownAfterTheDeadline(t *testing.T) {
	for name, hinder := range map[string]func(t *testing.T, o *reconcileRig, p seckill.Product){
		"no worker confirms": func(t *testing.T, o *reconcileRig, p seckill.Product) { o.Buy(t, p, "x", "y") },
		"a rebuild goes on": func(t *testing.T, o *reconcileRig, p seckill.Product) {
			rig.Must(t, o.Rig.Store.BeginRebuild(t.Context(), 1, p.Epoch))
		},
		"the ledger is lost": func(t *testing.T, o *reconcileRig, _ seckill.Product) {
			o.LoseJournal(t)
			o.Reconciler.Queue = o.Rig.Queue
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			o.Deadline = 100 * time.Millisecond
			hinder(t, o, o.busy(t))
			report := o.run(t, false)
			if report.Balanced != nil || len(report.Violations) != 0 || len(report.Repaired) != 0 {
				t.Errorf("balanced %v, violations %v, repaired %v", report.Balanced, report.Violations, report.Repaired)
			}
		})
	}
}

func TestRun_OutageIsAnError(t *testing.T) {
	o := newReconcileRig(t)
	o.busy(t)
	o.Rig.Ledger.FailBefore("Read", 1)
	_, err := o.Run(t.Context(), 1, false, "operator")
	rig.Refused(t, err, seckill.CodeBusy)
	for _, method := range []string{"Figures", "CheckMoney", "SaveReconciliation"} {
		o.Rig.Store.FailBefore(method, 1)
		if _, err := o.Run(t.Context(), 1, false, "operator"); err == nil {
			t.Errorf("%s failed and the report did not", method)
		}
	}
}

// awayLedger does not answer, like a frozen Redis, and records how long it is
// waited for.
type awayLedger struct {
	reconcile.Ledger
	waits time.Duration
}

func (a *awayLedger) Read(ctx context.Context, _ ledger.Shard) (ledger.Figures, error) {
	if until, bounded := ctx.Deadline(); bounded {
		a.waits = time.Until(until)
	}
	return ledger.Figures{}, errors.New("no answer")
}

// A report must not wait a minute for each of many products.
func TestRun_WaitsBrieflyForALedgerThatIsAway(t *testing.T) {
	o := newReconcileRig(t)
	o.busy(t)
	a := &awayLedger{Ledger: o.Rig.Ledger}
	o.Reconciler.Ledger, o.Reconciler.Deadline = a, time.Minute
	_, err := o.Run(t.Context(), 1, false, "operator")
	rig.Refused(t, err, seckill.CodeBusy)
	if a.waits == 0 || a.waits > 5*time.Second {
		t.Errorf("the report waited for %s", a.waits)
	}
}

// lostQueue is lost with its ledger before its figures are read first.
type lostQueue struct {
	queue.Queue
	lose func() queue.Queue
}

func (q *lostQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	if q.lose != nil {
		q.Queue, q.lose = q.lose(), nil
	}
	return q.Queue.Stats(ctx, product)
}

// The queue is empty because it is lost. Its orders are not in the store, and
// the recovery of the ledger decides about them. That is no drift.
func TestRun_LossDuringACutIsNoViolation(t *testing.T) {
	o := newReconcileRig(t)
	p := o.busy(t)
	o.Buy(t, p, "e", "f") // answered, and not in the store yet
	o.Reconciler.Queue = &lostQueue{o.Rig.Queue, func() queue.Queue {
		o.LoseJournal(t)
		return o.Rig.Queue
	}}
	o.Reconciler.Deadline = time.Second
	report := o.run(t, false)
	if report.Balanced != nil || len(report.Violations) != 0 {
		t.Errorf("balanced %v, violations %+v", report.Balanced, report.Violations)
	}
}

// reserve reserves one unit in the ledger, and reports whether it did.
func reserve(ctx context.Context, lane *ledger.Lane, claim seckill.Claim) (bool, error) {
	result, err := lane.Do(ctx, ledger.Reserve{Claims: []seckill.Claim{claim}, PriceCents: 999, Currency: "CNY", Name: "product"})
	return err == nil && result.Verdicts[0].Code == ledger.VerdictAccepted, err
}

// Many cuts run while buyers buy, pay and cancel, and units return. None may
// report a violation.
func TestRun_TrafficIsNoViolation(t *testing.T) {
	const (
		enoughCuts, enoughBought = 4, 60

		patience = time.Minute // for a busy machine
	)
	o := newReconcileRig(t)
	p := o.Open(t, 1, 400, rig.Limit(3))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	var bought atomic.Int64
	keepOn := func(what string, do func(n int) error) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := do(n); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				<-time.After(8 * time.Millisecond)
			}
		})
	}
	all.Go(func() {
		if err := o.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	for i := range 3 {
		lane := ledger.NewLane(o.Rig.Ledger, ledger.ShardOf(&p, 0), ledger.LaneOptions{})
		keepOn("buy", func(n int) error {
			accepted, err := reserve(ctx, lane, o.Claim(1, fmt.Sprintf("b-%d-%d", i, n%100)))
			if accepted {
				bought.Add(1)
			}
			return err
		})
	}
	pending := seckill.OrderPending
	keepOn("cancel", func(int) error {
		orders, err := o.Rig.Store.SearchOrders(ctx, store.OrderFilter{ProductID: 1, Status: &pending, Limit: 3})
		for _, order := range orders {
			if _, err := o.Rig.Store.Cancel(ctx, order.OrderNo, "test", rig.Operator); err != nil {
				return err
			}
		}
		return err
	})
	keepOn("release", func(int) error { return o.releaser().Round(ctx) })
	keepOn("restock", func(n int) error {
		if n%5 != 0 {
			return nil
		}
		_, err := o.Lifecycle.ChangeStock(ctx, 1, 1+int64(n%3), fmt.Sprint("change-", n), rig.Operator)
		return err
	})
	cuts := 0
	enough := func() bool {
		return cuts >= enoughCuts && bought.Load() >= enoughBought
	}
	for ; ctx.Err() == nil && !enough(); cuts++ {
		report, err := o.Run(t.Context(), 1, false, "test")
		rig.Must(t, err)
		if report.Balanced != nil && !*report.Balanced {
			t.Fatalf("a false alarm: %+v, figures %v", report.Violations, report.Figures)
		}
	}
	cancel()
	all.Wait()
	o.ConfirmAll(t)
	rig.Must(t, o.releaser().Round(t.Context()))
	balanced(t, o.run(t, false))
	if !enough() {
		t.Errorf("%d cuts over %d purchases show little", cuts, bought.Load())
	}
}

// While the store is the seller there is no ledger to compare. After the return
// the ledger has the orders of both.
func TestRun_TakeoverIsNoViolation(t *testing.T) {
	o := newReconcileRig(t)
	o.busy(t)
	taken := o.TakeOver(t, 1)
	balanced(t, o.run(t, false))
	sold := o.Sell(t, taken, "e", "f")
	_, err := o.Rig.Store.Cancel(t.Context(), sold[0], "test", rig.Operator)
	rig.Must(t, err)
	balanced(t, o.run(t, false))
	_, err = o.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	balanced(t, o.run(t, false))
}

// A process that died between the steps of a transfer leaves a record open. Its
// units are on neither shard, or already on the receiver. That is no violation,
// before and after another process finishes the transfer.
func TestRun_OpenTransferIsNoViolation(t *testing.T) {
	for name, steps := range map[string]int{"after its debit": 1, "after its credit": 2} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			p := o.Open(t, 1, 20, rig.Shards(3))
			o.Buy(t, p, "a", "b", "c")
			o.ConfirmAll(t)
			writes := []ledger.Write{
				ledger.Debit{To: 1, N: 1, ID: 9, Units: 4}, ledger.Credit{From: 0, N: 1, ID: 9, Units: 4},
			}
			for i, write := range writes[:steps] {
				_, err := o.Lanes.Do(t.Context(), ledger.ShardOf(&p, i), write)
				rig.Must(t, err)
			}
			for range 2 {
				if report := o.run(t, false); report.Balanced == nil || !*report.Balanced {
					t.Errorf("%+v", report)
				}
				rig.Must(t, o.Mover.Finish(t.Context(), &p))
			}
			// If the record is lost too, its units are missing.
			o.Rig.Ledger.Lie(func(f *ledger.Figures) {
				if f.Sent > 0 {
					f.Sent, f.Available = f.Sent+1, f.Available-1
				}
			})
			if report := o.run(t, false); report.Balanced == nil || *report.Balanced || !slices.Contains(promises(report), "I5") {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A transfer that is read at one end only has lost no units.
func TestRun_TransferBetweenReadingsIsNoViolation(t *testing.T) {
	o := newReconcileRig(t)
	o.busy(t)
	var reads atomic.Int64
	o.Rig.Ledger.Lie(func(f *ledger.Figures) { // the other end arrives before the second reading
		if reads.Add(1) == 1 {
			f.Sent++
			f.Available--
		}
	})
	balanced(t, o.run(t, false))
	if reads.Load() != 2 {
		t.Errorf("%d readings, want 2", reads.Load())
	}
}

// restockingLedger makes stock changes that cancel out between the reading of
// the ledger and the last reading of the store.
type restockingLedger struct {
	reconcile.Ledger
	restock func()
}

func (l *restockingLedger) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	l.restock()
	return l.Ledger.Read(ctx, shard)
}

func TestRun_StockChangesThatCancelOutAreNoViolation(t *testing.T) {
	o := newReconcileRig(t)
	o.busy(t)
	step := 0
	change := func(delta int64) {
		step++
		_, err := o.Lifecycle.ChangeStock(t.Context(), 1, delta, fmt.Sprint("step-", step), rig.Operator)
		rig.Must(t, err)
	}
	under := o.Reconciler.Ledger
	o.Reconciler.Ledger = &restockingLedger{Ledger: under, restock: func() { change(10) }}
	o.Reconciler.Queue = &unstockingQueue{Queue: o.Rig.Queue, unstock: func() { change(-10) }}
	balanced(t, o.run(t, false))
	if step != 2 {
		t.Errorf("%d changes, want 2", step)
	}
}

type unstockingQueue struct {
	queue.Queue
	unstock func()
}

func (q *unstockingQueue) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	q.unstock()
	return q.Queue.Stats(ctx, product)
}

// auditedLedger returns the next of counts for each audit.
type auditedLedger struct {
	reconcile.Ledger
	counts []ledger.Audit
	asked  int
}

func (l *auditedLedger) Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	walked, err := l.Ledger.Audit(ctx, shard)
	counted := l.counts[min(l.asked, len(l.counts)-1)]
	counted.Epoch = walked.Epoch
	l.asked++
	return counted, err
}

// Deleted marks leave all figures unchanged. They are counted, and a difference
// needs two equal steady counts.
func TestRun_MissingMarksAreAViolation(t *testing.T) {
	right := ledger.Audit{Steady: true, Units: 4, Orders: 4, Marked: 4, Live: 4}
	wrong := ledger.Audit{Steady: true, Units: 3, Orders: 3, Marked: 4, Live: 4}
	other := ledger.Audit{Steady: true, Units: 2, Orders: 2, Marked: 3, Live: 3}
	for name, c := range map[string]struct {
		counts []ledger.Audit
		want   string
	}{
		"as the figures say":            {[]ledger.Audit{right}, ""},
		"missing":                       {[]ledger.Audit{wrong}, "I3"},
		"missing, in a disturbed count": {[]ledger.Audit{{}, wrong}, ""},
		"missing in one count":          {[]ledger.Audit{wrong, right}, ""},
		"never the same":                {[]ledger.Audit{wrong, other, wrong, other}, ""},
		"never steady":                  {[]ledger.Audit{{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			o.busy(t)
			o.Reconciler.Ledger = &auditedLedger{Ledger: o.Rig.Ledger, counts: c.counts}
			report := o.run(t, false)
			if got := strings.Join(promises(report), " "); report.Balanced == nil || *report.Balanced != (c.want == "") || got != c.want {
				t.Errorf("found %q, want %q: %+v", got, c.want, report)
			}
		})
	}
}

// A report must not take rows that are being deleted for drift.
func TestRun_ProductDeletedMeanwhileIsNotFound(t *testing.T) {
	o := newReconcileRig(t)
	p := o.Open(t, 1, 20, func(p *seckill.Product) { p.Test = true })
	o.Buy(t, p, "a", "b")
	o.ConfirmAll(t)
	_, err := o.Lifecycle.SetState(t.Context(), 1, seckill.SaleEnded, rig.Operator)
	rig.Must(t, err)
	gate := o.Rig.Store.Block("CheckMoney")
	done := make(chan error, 1)
	go func() {
		_, err := o.Run(t.Context(), 1, false, "operator")
		done <- err
	}()
	<-gate.Arrived()
	_, err = o.Lifecycle.Delete(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	gate.Open()
	rig.Refused(t, <-done, seckill.CodeNotFound)
	if len(o.reports) != 0 {
		t.Errorf("reported %+v", o.reports)
	}
}
