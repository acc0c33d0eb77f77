package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/duty"
	"seckill/internal/ledger"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/reconcile"
	"seckill/internal/stats"
	"seckill/internal/store"
	"seckill/test/rig"
)

// office is a rig with a reconciler.
type office struct {
	*rig.Rig
	*reconcile.Reconciler
	reports []stats.Report
}

func newOffice(t *testing.T) *office {
	t.Helper()
	t.Parallel()
	o := &office{Rig: rig.New(t)}
	o.Reconciler = &reconcile.Reconciler{
		Store: o.Rig.Store, Ledger: o.Rig.Ledger, Queue: o.Rig.Queue, Recoverer: o.Desk, Deadline: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler), OnReport: func(r stats.Report) { o.reports = append(o.reports, r) },
	}
	return o
}

func (o *office) run(t *testing.T, repair bool) stats.Report {
	t.Helper()
	report, err := o.Run(t.Context(), 1, repair, "operator")
	rig.Must(t, err)
	return report
}

// busy is a sale in which everything has happened: confirmed, queued, parked,
// paid, cancelled (released and not), with more stock and less.
func (o *office) busy(t *testing.T) seckill.Product {
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
		_, err := o.Desk.ChangeStock(t.Context(), 1, delta, id, rig.Operator)
		rig.Must(t, err)
	}
	return p
}

func (o *office) releaser() *duty.Releaser {
	return &duty.Releaser{Store: o.Rig.Store, Lanes: o.Lanes, OnReleased: func(uint32) {}, OnTrouble: func(uint32, error) {}}
}

func (o *office) pay(t *testing.T, no seckill.OrderNo, trade string) {
	t.Helper()
	_, err := o.Rig.Store.RecordPayment(t.Context(), payment.Notice{
		Provider: "purse", TradeNo: trade, OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: o.Time.Now(),
	})
	rig.Must(t, err)
}

func promises(r stats.Report) []string {
	var found []string
	for _, v := range r.Violations {
		if !slices.Contains(found, v.Promise) {
			found = append(found, v.Promise)
		}
	}
	slices.Sort(found)
	return found
}

func balanced(t *testing.T, r stats.Report) {
	t.Helper()
	if r.Balanced == nil || !*r.Balanced || len(r.Violations) != 0 {
		t.Fatalf("balanced %v, violations %+v, figures %v", r.Balanced, r.Violations, r.Figures)
	}
}

func TestASaleAtRestIsBalanced(t *testing.T) {
	o := newOffice(t)
	o.busy(t)
	balanced(t, o.run(t, false))
	rig.Must(t, o.releaser().Round(t.Context()))
	balanced(t, o.run(t, true))
	_, err := o.Desk.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	report := o.run(t, false)
	balanced(t, report)
	if report.Figures["offered"] != 22 || report.Figures["ledger_reserved"] != 2 || len(o.reports) != 3 {
		t.Errorf("figures are %v after %d reports", report.Figures, len(o.reports))
	}
	kept, err := o.Rig.Store.Reconciliations(t.Context(), 1, 10)
	rig.Must(t, err)
	if len(kept) != 3 || kept[0].ID != report.ID || kept[0].Balanced == nil || !*kept[0].Balanced {
		t.Errorf("kept %+v", kept)
	}
}

func TestAProductThatWasNeverPreheatedIsBalanced(t *testing.T) {
	o := newOffice(t)
	o.Product(t, 1, 20)
	balanced(t, o.run(t, false))
	_, err := o.Run(t.Context(), 9, false, "operator")
	rig.Refused(t, err, seckill.CodeNotFound)
}

// Drift in each place is found under the number of the promise that it breaks.
func TestDriftIsFoundWhereItIs(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, o *office)
		want   string
	}{
		"a ledger that has a unit too many": {func(_ *testing.T, o *office) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Available++ })
		}, "I5"},
		"a wrong allotment": {func(_ *testing.T, o *office) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Allotted++; f.Available++ })
		}, "I5"},
		"a mark without an order": {func(_ *testing.T, o *office) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Marked++; f.Available-- })
		}, "I3"},
		"an order without a mark": {func(_ *testing.T, o *office) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Marked--; f.Available++ })
		}, "I3"},
		"units sent that nobody received": {func(_ *testing.T, o *office) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Sent++; f.Available-- })
		}, "I5"},
		"a limit that is not the product's": {func(_ *testing.T, o *office) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) { f.Limit = 1 })
		}, "I3"},
		"stock that is gone": {func(t *testing.T, o *office) {
			o.Exec(t, `UPDATE tb_seckill_product SET stock = stock - 1 WHERE id = 1`)
		}, "I1 I6"},
		"more orders than offered": {func(t *testing.T, o *office) {
			o.Exec(t, `UPDATE tb_seckill_product SET offered = 1 WHERE id = 1`)
		}, "I1 I2 I5"},
		"an order that lost its row": {func(t *testing.T, o *office) {
			o.Exec(t, `DELETE FROM tb_seckill_order WHERE user_id = CAST('d' AS BLOB)`)
		}, "I1 I3 I6"},
		"a buyer record that says less": {func(t *testing.T, o *office) {
			o.Exec(t, `DELETE FROM tb_user_seckill WHERE user_id = CAST('d' AS BLOB)`)
		}, "I3"},
		"a stock log with a gap": {func(t *testing.T, o *office) {
			o.Exec(t, `DELETE FROM tb_stock_log WHERE product_id = 1 AND seq = 2`)
		}, "I6"},
		"a paid order without its payment": {func(t *testing.T, o *office) {
			o.Exec(t, `DELETE FROM tb_payment WHERE trade_no = 't1'`)
		}, "I8"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.busy(t)
			rig.Must(t, o.releaser().Round(t.Context())) // at rest: nothing hides in the bracket
			c.damage(t, o)
			report := o.run(t, false)
			if report.Balanced == nil || *report.Balanced || strings.Join(promises(report), " ") != c.want {
				t.Errorf("balanced %v, violations %+v, want %s", report.Balanced, report.Violations, c.want)
			}
			if len(report.Repaired) != 0 {
				t.Errorf("repaired %v without being asked", report.Repaired)
			}
		})
	}
}

func TestRepairMendsWhatHasOneSafeDirection(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, o *office, p seckill.Product)
		epoch  uint64 // afterwards
	}{
		"buyer records": {func(t *testing.T, o *office, _ seckill.Product) {
			o.Exec(t, `DELETE FROM tb_user_seckill`)
		}, 1},
		"money that nobody owes": {func(t *testing.T, o *office, _ seckill.Product) {
			o.pay(t, o.Claim(1, "x").OrderNo, "t2")
			o.pay(t, firstPaid(t, o), "t3") // doubled
			o.Exec(t, `DELETE FROM tb_payment WHERE type = 'refund' AND order_no = ?`, firstPaid(t, o).String())
		}, 1},
		"a ledger that forgot an order": {func(t *testing.T, o *office, p seckill.Product) {
			held, err := o.Embedded.Held(t.Context(), ledger.ShardOf(&p, 0), "d")
			rig.Must(t, err)
			_, err = o.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.Release{
				Orders: []ledger.ReleaseOrder{{OrderNo: held[0].OrderNo, Buyer: "d"}},
			})
			rig.Must(t, err)
		}, 2},
		"a ledger with a limit of its own": {func(_ *testing.T, o *office, p seckill.Product) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) {
				if f.Epoch == p.Epoch {
					f.Limit = 9
				}
			})
		}, 2},
		"a ledger with units of nowhere": {func(t *testing.T, o *office, p seckill.Product) {
			_, err := o.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.StockChange{ID: "stray", Delta: 7})
			rig.Must(t, err)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			p := o.busy(t)
			rig.Must(t, o.releaser().Round(t.Context()))
			c.damage(t, o, p)
			if report := o.run(t, false); report.Balanced == nil || *report.Balanced {
				t.Fatal("the damage does not show")
			}
			report := o.run(t, true)
			balanced(t, report)
			if len(report.Repaired) != 1 {
				t.Errorf("repaired %v", report.Repaired)
			}
			if got := o.Stored(t, 1).Epoch; got != c.epoch {
				t.Errorf("the epoch is %d, want %d", got, c.epoch)
			}
			audit, err := o.Rig.Store.Audit(t.Context(), store.AuditFilter{Limit: 1})
			rig.Must(t, err)
			if len(audit) != 1 || audit[0].Reason != "reconcile repair" {
				t.Errorf("the audit says %+v", audit)
			}
			again := o.run(t, true)
			balanced(t, again)
			if len(again.Repaired) != 0 {
				t.Errorf("repaired %v again", again.Repaired)
			}
		})
	}
}

func firstPaid(t *testing.T, o *office) seckill.OrderNo {
	t.Helper()
	paid := seckill.OrderPaid
	orders, err := o.Rig.Store.SearchOrders(t.Context(), store.OrderFilter{ProductID: 1, Status: &paid, Limit: 1})
	rig.Must(t, err)
	return orders[0].OrderNo
}

// What needs a person's judgement is left alone, and so is everything else over
// a store that contradicts itself: a unit written into the stock would be sold,
// and money be given back for an order whose status somebody altered.
func TestRepairLeavesTheRestToAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		damage []string
		found  string
	}{
		"stock that is gone":     {[]string{`UPDATE tb_seckill_product SET stock = stock - 1 WHERE id = 1`}, "I1 I6"},
		"a stock log with a gap": {[]string{`DELETE FROM tb_stock_log WHERE product_id = 1 AND seq = 2`}, "I6"},
		"an order that is gone":  {[]string{`DELETE FROM tb_seckill_order WHERE user_id = CAST('d' AS BLOB) AND quantity > 0`}, "I1 I3 I6"},
		"an order that is gone, with its record and its unit back": {[]string{
			`DELETE FROM tb_seckill_order WHERE user_id = CAST('d' AS BLOB)`,
			`DELETE FROM tb_user_seckill WHERE user_id = CAST('d' AS BLOB)`,
			`UPDATE tb_seckill_product SET stock = stock + 1 WHERE id = 1`,
		}, "I3 I6"},
		"an order that is said to be refunded": {[]string{
			`UPDATE tb_seckill_order SET status = 4 WHERE status = 1`,
			`UPDATE tb_seckill_product SET stock = stock + 1 WHERE id = 1`,
		}, "I3 I6 I8"},
		"an order of another group": {[]string{`UPDATE tb_seckill_order SET limit_group = 7 WHERE user_id = CAST('d' AS BLOB)`}, "I3"},
		"an order that never expires": {[]string{
			`UPDATE tb_seckill_order SET pay_before = NULL WHERE user_id = CAST('d' AS BLOB)`,
		}, "I3"},
		"a release that nobody makes": {[]string{
			`UPDATE tb_seckill_order SET release_time = NULL, release_epoch = 1 WHERE user_id = CAST('a' AS BLOB)`,
		}, "I3"},
		"a letter of another buyer's": {[]string{`UPDATE tb_dead_letter SET user_id = CAST('thief' AS BLOB)`}, "I3"},
		"a letter of another key's":   {[]string{`UPDATE tb_dead_letter SET idem_key = CAST('stolen' AS BLOB)`}, "I3"},
		"a letter of another group's": {[]string{`UPDATE tb_dead_letter SET limit_group = 7`}, "I3"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			p := o.busy(t)
			o.Buy(t, p, "parked")
			o.park(t)
			rig.Must(t, o.releaser().Round(t.Context()))
			balanced(t, o.run(t, false))
			for _, damage := range c.damage {
				o.Exec(t, damage)
			}
			before, err := o.Rig.Store.Audit(t.Context(), store.AuditFilter{Limit: 1})
			rig.Must(t, err)
			report := o.run(t, true)
			if got := strings.Join(promises(report), " "); report.Balanced == nil || *report.Balanced || got != c.found {
				t.Errorf("found %q, want %q: %+v", got, c.found, report)
			}
			after, err := o.Rig.Store.Audit(t.Context(), store.AuditFilter{Limit: 1})
			rig.Must(t, err)
			if len(report.Repaired) != 0 || o.Stored(t, 1).Epoch != 1 || !slices.Equal(before, after) {
				t.Errorf("repaired %v at epoch %d, audit %+v", report.Repaired, o.Stored(t, 1).Epoch, after)
			}
		})
	}
}

// A product that has no ledger has rows that can be wrong all the same.
func TestAWrongRowOfADirectProductIsFound(t *testing.T) {
	o := newOffice(t)
	p := o.Open(t, 1, 20, rig.Strategy(seckill.StrategyDirect))
	o.Sell(t, p, "a", "b")
	balanced(t, o.run(t, false))
	o.Exec(t, `UPDATE tb_seckill_order SET pay_before = NULL WHERE user_id = CAST('b' AS BLOB)`)
	if found := o.run(t, true); strings.Join(promises(found), " ") != "I3" || len(found.Repaired) != 0 {
		t.Errorf("%+v", found)
	}
}

func TestPastTheDeadlineOneCannotTell(t *testing.T) {
	for name, hinder := range map[string]func(t *testing.T, o *office, p seckill.Product){
		"nobody confirms": func(t *testing.T, o *office, p seckill.Product) { o.Buy(t, p, "x", "y") },
		"a rebuild goes on": func(t *testing.T, o *office, p seckill.Product) {
			rig.Must(t, o.Rig.Store.SetRebuilding(t.Context(), 1, p.Epoch, true))
		},
		"the ledger is lost": func(t *testing.T, o *office, _ seckill.Product) {
			o.LoseJournal(t)
			o.Reconciler.Queue = o.Rig.Queue
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.Deadline = 100 * time.Millisecond
			hinder(t, o, o.busy(t))
			report := o.run(t, false)
			if report.Balanced != nil || len(report.Violations) != 0 || len(report.Repaired) != 0 {
				t.Errorf("balanced %v, violations %v, repaired %v", report.Balanced, report.Violations, report.Repaired)
			}
		})
	}
}

// Of a ledger that is lost no count can tell anything: a repair recovers it, and
// counts then.
func TestALostLedgerIsRecoveredByARepairAndCounted(t *testing.T) {
	o := newOffice(t)
	o.Deadline = 100 * time.Millisecond
	o.busy(t)
	o.LoseJournal(t)
	o.Reconciler.Queue = o.Rig.Queue
	report := o.run(t, true)
	balanced(t, report)
	if len(report.Repaired) != 1 || o.Stored(t, 1).Epoch != 2 {
		t.Errorf("repaired %v, at epoch %d", report.Repaired, o.Stored(t, 1).Epoch)
	}
}

func TestAnOutageIsAnErrorNotAVerdict(t *testing.T) {
	o := newOffice(t)
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

// Many cuts while buyers buy, pay, cancel, and units come back: none may be
// called a violation.
func TestTrafficIsNoFalseAlarm(t *testing.T) {
	const (
		enoughCuts, enoughBought, enoughSoldTwice = 4, 60, 1

		patience = time.Minute // for a loaded machine
	)
	o := newOffice(t)
	p := o.Open(t, 1, 400, rig.Limit(3), rig.Share(0.2))
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
	soldTwice := o.counterTraffic(ctx, p, keepOn)
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
		_, err := o.Desk.ChangeStock(ctx, 1, 1+int64(n%3), fmt.Sprint("change-", n), rig.Operator)
		return err
	})
	cuts := 0
	enough := func() bool {
		return cuts >= enoughCuts && bought.Load() >= enoughBought && soldTwice.Load() >= enoughSoldTwice
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
		t.Errorf("%d cuts over %d purchases, %d of them sold twice, show little", cuts, bought.Load(), soldTwice.Load())
	}
}

// What a repair mends is gone afterwards: the report that found it must stay.
func TestWhatWasFoundIsKeptBeforeItIsMended(t *testing.T) {
	for name, fail := range map[string]bool{"a repair": false, "a repair that dies midway": true} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.busy(t)
			o.Exec(t, `DELETE FROM tb_user_seckill`)
			want := []string{"I3", ""}
			if fail {
				o.Rig.Store.FailAfter("RepairBuyers", 1)
				want = want[:1]
			}
			_, err := o.Run(t.Context(), 1, true, "operator")
			if (err != nil) != fail {
				t.Fatalf("error %v", err)
			}
			kept, err := o.Rig.Store.Reconciliations(t.Context(), 1, 10)
			rig.Must(t, err)
			if len(kept) != len(want) || len(o.reports) != len(want) {
				t.Fatalf("%d reports kept, %d told, want %d", len(kept), len(o.reports), len(want))
			}
			for i, promise := range want {
				if got := strings.Join(promises(o.reports[i]), " "); got != promise {
					t.Errorf("report %d found %q, want %q", i, got, promise)
				}
				if mended := len(o.reports[i].Repaired) > 0; mended != (promise == "") {
					t.Errorf("report %d was repaired by %v", i, o.reports[i].Repaired)
				}
			}
		})
	}
}

// A process that died between the steps of a transfer leaves a record open, with
// its units on neither shard or on the receiver's already. Nothing is amiss, and
// nothing is when somebody has finished it.
func TestATransferThatWasLeftOpenIsNoViolation(t *testing.T) {
	for name, steps := range map[string]int{"after its debit": 1, "after its credit": 2} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
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
			// A record that was lost, though, is units that nobody can find.
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

// A transfer seen at one end only is none that lost units.
func TestATransferBetweenTwoReadingsIsNoViolation(t *testing.T) {
	o := newOffice(t)
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

// restocking makes changes that cancel each other out between the ledger's
// reading and the store's last one.
type restocking struct {
	reconcile.Ledger
	restock func()
}

func (l *restocking) Read(ctx context.Context, shard ledger.Shard) (ledger.Figures, error) {
	l.restock()
	return l.Ledger.Read(ctx, shard)
}

func TestChangesThatCancelOutInACutAreNoViolation(t *testing.T) {
	o := newOffice(t)
	o.busy(t)
	step := 0
	change := func(delta int64) {
		step++
		_, err := o.Desk.ChangeStock(t.Context(), 1, delta, fmt.Sprint("step-", step), rig.Operator)
		rig.Must(t, err)
	}
	under := o.Reconciler.Ledger
	o.Reconciler.Ledger = &restocking{Ledger: under, restock: func() { change(10) }}
	o.Reconciler.Queue = &unstocking{Queue: o.Rig.Queue, unstock: func() { change(-10) }}
	balanced(t, o.run(t, false))
	if step != 2 {
		t.Errorf("%d changes, want 2", step)
	}
}

type unstocking struct {
	queue.Queue
	unstock func()
}

func (q *unstocking) Stats(ctx context.Context, product uint32) (queue.Stats, error) {
	q.unstock()
	return q.Queue.Stats(ctx, product)
}

// audited is a ledger whose marks are counted, each time as the next of counts.
type audited struct {
	reconcile.Ledger
	counts []ledger.Audit
	asked  int
}

func (l *audited) Audit(ctx context.Context, shard ledger.Shard, each func(ledger.Mark)) (ledger.Audit, error) {
	walked, err := l.Ledger.(ledger.Auditing).Audit(ctx, shard, each)
	counted := l.counts[min(l.asked, len(l.counts)-1)]
	counted.Epoch = walked.Epoch
	l.asked++
	return counted, err
}

// Marks that somebody deleted leave all figures as they were. They are counted,
// and a difference is one that two steady counts agree upon.
func TestMarksThatAreMissingAreAViolation(t *testing.T) {
	right := ledger.Audit{Steady: true, Units: 4, Orders: 4, Marked: 4, Live: 4}
	wrong := ledger.Audit{Steady: true, Units: 3, Orders: 3, Marked: 4, Live: 4}
	other := ledger.Audit{Steady: true, Units: 2, Orders: 2, Marked: 3, Live: 3}
	for name, c := range map[string]struct {
		counts []ledger.Audit
		want   string
	}{
		"as the figures say":            {[]ledger.Audit{right}, ""},
		"missing":                       {[]ledger.Audit{wrong}, "I3"},
		"missing, in a disturbed count": {[]ledger.Audit{{}, wrong}, ""}, // the orders are compared all the same
		"missing in one count":          {[]ledger.Audit{wrong, right}, ""},
		"never the same":                {[]ledger.Audit{wrong, other, wrong, other}, ""},
		"never steady":                  {[]ledger.Audit{{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.busy(t)
			o.Reconciler.Ledger = &audited{Ledger: o.Rig.Ledger, counts: c.counts}
			report := o.run(t, false)
			if got := strings.Join(promises(report), " "); report.Balanced == nil || *report.Balanced != (c.want == "") || got != c.want {
				t.Errorf("found %q, want %q: %+v", got, c.want, report)
			}
		})
	}
}

func TestMissingMarksAreMendedByARecovery(t *testing.T) {
	o := newOffice(t)
	p := o.busy(t)
	wrong := ledger.Audit{Steady: true, Units: 3, Orders: 3, Marked: 4, Live: 4}
	o.Reconciler.Ledger = &audited{Ledger: o.Rig.Ledger, counts: []ledger.Audit{wrong, wrong, wrong, wrong, {Steady: true}}}
	mended := o.run(t, true)
	balanced(t, mended)
	if mended.Figures["epoch"] != int64(p.Epoch)+1 {
		t.Errorf("epoch %d after %d", mended.Figures["epoch"], p.Epoch)
	}
}
