package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/test/rig"
)

func TestRepair_MakesEverySafeRepair(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, o *reconcileRig, p seckill.Product)
		epoch  uint64 // after the repair
	}{
		"buyer records": {func(t *testing.T, o *reconcileRig, _ seckill.Product) {
			o.Exec(t, `DELETE FROM tb_user_seckill`)
		}, 1},
		"a refund that was given up": {func(t *testing.T, o *reconcileRig, _ seckill.Product) {
			o.pay(t, firstPaid(t, o), "t3") // doubled
			o.Exec(t, `UPDATE tb_payment SET status = 'failed', next_time = NULL WHERE type = 'refund' AND order_no = ?`, firstPaid(t, o).String())
		}, 1},
		"a ledger that forgot an order": {func(t *testing.T, o *reconcileRig, p seckill.Product) {
			held, err := o.Embedded.Held(t.Context(), ledger.ShardOf(&p, 0), "d")
			rig.Must(t, err)
			_, err = o.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.Release{
				Orders: []ledger.ReleaseOrder{{OrderNo: held[0].OrderNo, Buyer: "d"}},
			})
			rig.Must(t, err)
		}, 2},
		"a ledger with a limit of its own": {func(_ *testing.T, o *reconcileRig, p seckill.Product) {
			o.Rig.Ledger.Lie(func(f *ledger.Figures) {
				if f.Epoch == p.Epoch {
					f.Limit = 9
				}
			})
		}, 2},
		"a ledger with units of nowhere": {func(t *testing.T, o *reconcileRig, p seckill.Product) {
			_, err := o.Lanes.Do(t.Context(), ledger.ShardOf(&p, 0), ledger.StockChange{ID: "stray", Delta: 7})
			rig.Must(t, err)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			p := o.busy(t)
			rig.Must(t, o.releaser().Round(t.Context()))
			c.damage(t, o, p)
			if report := o.run(t, false); report.Balanced == nil || *report.Balanced {
				t.Fatal("the damage is not reported")
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
				t.Errorf("the audit is %+v", audit)
			}
			again := o.run(t, true)
			balanced(t, again)
			if len(again.Repaired) != 0 {
				t.Errorf("repaired %v again", again.Repaired)
			}
		})
	}
}

func firstPaid(t *testing.T, o *reconcileRig) seckill.OrderNo {
	t.Helper()
	paid := seckill.OrderPaid
	orders, err := o.Rig.Store.SearchOrders(t.Context(), store.OrderFilter{ProductID: 1, Status: &paid, Limit: 1})
	rig.Must(t, err)
	return orders[0].OrderNo
}

// If the store contradicts itself, nothing is repaired. Otherwise a unit that
// was added to the stock by hand would be sold, and money of an order whose
// status was changed by hand would be refunded.
func TestRepair_LeavesTheRestToAnOperator(t *testing.T) {
	for name, c := range map[string]struct {
		damage []string
		found  string
	}{
		"stock that is gone":     {[]string{`UPDATE tb_seckill_product SET stock = stock - 1 WHERE id = 1`}, "I1 I6"},
		"a stock log with a gap": {[]string{`DELETE FROM tb_stock_log WHERE product_id = 1 AND seq = 2`}, "I6"},
		"an order that is gone":  {[]string{`DELETE FROM tb_seckill_order WHERE user_id = CAST('d' AS BLOB) AND quantity > 0`}, "I1 I3"},
		"an order that is gone, with its record and its unit back": {[]string{
			`DELETE FROM tb_seckill_order WHERE user_id = CAST('d' AS BLOB)`,
			`DELETE FROM tb_user_seckill WHERE user_id = CAST('d' AS BLOB)`,
			`UPDATE tb_seckill_product SET stock = stock + 1 WHERE id = 1`,
		}, "I1 I3 I6"},
		"an order that is marked as refunded by hand": {[]string{
			`UPDATE tb_seckill_order SET status = 4 WHERE status = 1`,
			`UPDATE tb_seckill_product SET stock = stock + 1 WHERE id = 1`,
		}, "I1 I3 I6 I8"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			o.busy(t)
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

// A lost ledger cannot be counted. A repair recovers it first.
func TestRepair_RecoversALostLedgerAndCounts(t *testing.T) {
	o := newReconcileRig(t)
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

// A repair removes what it repairs, so the report that found it must be kept.
func TestRepair_SavesTheReportFirst(t *testing.T) {
	for name, fail := range map[string]bool{"a repair": false, "a repair that dies midway": true} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
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
			kept, err := o.Rig.Store.Reconciliations(t.Context(), 1, 0, 10)
			rig.Must(t, err)
			if len(kept) != len(want) || len(o.reports) != len(want) {
				t.Fatalf("%d reports kept, %d published, want %d", len(kept), len(o.reports), len(want))
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

func TestRepair_MissingMarksAreRecovered(t *testing.T) {
	o := newReconcileRig(t)
	p := o.busy(t)
	wrong := ledger.Audit{Steady: true, Units: 3, Orders: 3, Marked: 4, Live: 4}
	o.Reconciler.Ledger = &auditedLedger{Ledger: o.Rig.Ledger, counts: []ledger.Audit{wrong, wrong, wrong, wrong, {Steady: true}}}
	mended := o.run(t, true)
	balanced(t, mended)
	if mended.Figures["epoch"] != int64(p.Epoch)+1 {
		t.Errorf("epoch %d after %d", mended.Figures["epoch"], p.Epoch)
	}
}

// The regular run rebuilds a ledger that contradicts itself or lacks orders. A
// ledger that holds more than the store is left to an operator: a restored
// store may have lost those orders.
func TestRebuild_OnlyALedgerAtFault(t *testing.T) {
	for name, c := range map[string]struct {
		lie     func(f *ledger.Figures)
		rebuilt bool
	}{
		"a unit is free again":        {func(f *ledger.Figures) { f.Marked--; f.Available++ }, true},
		"a unit too many is free":     {func(f *ledger.Figures) { f.Available++ }, true},
		"an order that is not stored": {func(f *ledger.Figures) { f.Marked++; f.Available-- }, false},
		"nothing":                     {func(*ledger.Figures) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReconcileRig(t)
			o.busy(t)
			o.ConfirmAll(t)
			rig.Must(t, o.releaser().Round(t.Context()))
			o.Rig.Ledger.Lie(func(f *ledger.Figures) {
				if f.Epoch == 1 {
					c.lie(f)
				}
			})
			report, err := o.Rebuild(t.Context(), 1, "system")
			rig.Must(t, err)
			if rebuilt := o.Stored(t, 1).Epoch > 1; rebuilt != c.rebuilt || len(report.Repaired) > 0 != c.rebuilt {
				t.Errorf("rebuilt: %v, report %+v", rebuilt, report)
			}
		})
	}
}
