package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
	"seckill/test/rig"
)

// reserve buys one unit of the ledger, and reports whether it did.
func reserve(ctx context.Context, lane *ledger.Lane, claim seckill.Claim) (bool, error) {
	result, err := lane.Do(ctx, ledger.Reserve{Claims: []seckill.Claim{claim}, PriceCents: 999, Currency: "CNY", Name: "product"})
	return err == nil && result.Verdicts[0].Code == ledger.VerdictAccepted, err
}

// counterTraffic keeps on selling from the share, some claims as if the
// ledger's reply had been lost, and moving it. It counts those sold twice.
func (o *office) counterTraffic(ctx context.Context, p seckill.Product, keepOn func(what string, do func(n int) error)) *atomic.Int64 {
	var soldTwice atomic.Int64
	doubtful := ledger.NewLane(o.Rig.Ledger, ledger.ShardOf(&p, 0), ledger.LaneOptions{})
	keepOn("sell from the share", func(n int) error {
		claim := o.Claim(p.ID, fmt.Sprintf("s-%d", n%100))
		reserved := false
		if n%4 == 0 {
			var err error
			if reserved, err = reserve(ctx, doubtful, claim); err != nil {
				return err
			}
		}
		result, err := o.Rig.Store.Sell(ctx, store.SellRequest{
			ProductID: p.ID, Origin: seckill.OriginFallback, Claims: []seckill.Claim{claim}, ExpireAfter: time.Hour,
		})
		if err == nil && reserved && result.Verdicts[0].Code == ledger.VerdictAccepted {
			soldTwice.Add(1)
		}
		return err
	})
	keepOn("move the share", func(n int) error {
		if n%50 != 49 {
			return nil
		}
		if _, err := o.Rig.Store.TakeShare(ctx, p.ID, fmt.Sprint("share-", n), rig.Operator); err != nil {
			return err
		}
		return o.Desk.FinishStockChanges(ctx, 10)
	})
	return &soldTwice
}

func TestASaleWithAShareIsBalanced(t *testing.T) {
	o := newOffice(t)
	p := o.Open(t, 1, 20, rig.Share(0.5))
	o.Buy(t, p, "a", "b", "c")
	nos := o.Sell(t, p, "d", "e", "f")
	o.ConfirmAll(t)
	o.pay(t, nos[0], "t1")
	_, err := o.Rig.Store.Cancel(t.Context(), nos[1], "test", rig.Operator)
	rig.Must(t, err)
	report := o.run(t, false)
	balanced(t, report)
	if report.Figures["fallback_available"] != 8 || report.Figures["fallback_reserved"] != 2 || report.Figures["ledger_reserved"] != 3 {
		t.Errorf("figures are %v", report.Figures)
	}

	// Taken and not told yet, told, and recovered.
	_, err = o.Rig.Store.TakeShare(t.Context(), 1, "rest", rig.Operator)
	rig.Must(t, err)
	balanced(t, o.run(t, false))
	rig.Must(t, o.Desk.FinishStockChanges(t.Context(), 10))
	balanced(t, o.run(t, false))
	_, err = o.Desk.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	balanced(t, o.run(t, false))
}

// The ledger sold an order whose reply was lost; the share sold it too.
func TestAnOrderThatWasSoldTwiceIsBalancedBeforeAndAfterItsRelease(t *testing.T) {
	o := newOffice(t)
	p := o.Open(t, 1, 10, rig.Share(0.5))
	claim := o.Claim(1, "a")
	o.Reserve(t, p, claim)
	o.SellClaims(t, p, claim)
	o.ConfirmAll(t)
	balanced(t, o.run(t, false))
	rig.Must(t, o.releaser().Round(t.Context()))
	report := o.run(t, false)
	balanced(t, report)
	if report.Figures["ledger_reserved"] != 0 || report.Figures["fallback_reserved"] != 1 {
		t.Errorf("figures are %v", report.Figures)
	}
}

func TestADirectSaleIsBalancedWithoutALedger(t *testing.T) {
	o := newOffice(t)
	for _, method := range []string{"Read", "Held", "Do"} {
		o.Rig.Ledger.FailBefore(method, -1)
	}
	p := o.Open(t, 1, 10, rig.Strategy(seckill.StrategyDirect))
	nos := o.Sell(t, p, "a", "b", "c")
	o.pay(t, nos[0], "t1")
	_, err := o.Rig.Store.Cancel(t.Context(), nos[1], "test", rig.Operator)
	rig.Must(t, err)
	balanced(t, o.run(t, true))
}

func TestDriftOfTheCounterIsFoundWhereItIs(t *testing.T) {
	const lost = `DELETE FROM tb_seckill_order WHERE user_id = CAST('b' AS BLOB)`
	for name, c := range map[string]struct {
		direct bool
		damage string
		want   string
	}{
		"a share that shrank":                  {false, `UPDATE tb_seckill_product SET share_left = share_left - 1`, "I5"},
		"a share beyond the stock":             {false, `UPDATE tb_seckill_product SET share_left = stock + 1`, "I2 I5"},
		"a fallback order that lost its row":   {false, lost, "I1 I3 I5 I6"},
		"a fallback order without its record":  {false, `DELETE FROM tb_user_seckill WHERE user_id = CAST('b' AS BLOB)`, "I3"},
		"a direct order that lost its row":     {true, lost, "I1 I3 I6"},
		"a direct stock that is gone":          {true, `UPDATE tb_seckill_product SET stock = stock - 1`, "I1 I6"},
		"a direct order paid by nothing":       {true, `DELETE FROM tb_payment WHERE trade_no = 't1'`, "I8"},
		"a direct sale of more than there was": {true, `UPDATE tb_seckill_product SET offered = 1`, "I1 I2"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			change := rig.Share(0.5)
			if c.direct {
				change = rig.Strategy(seckill.StrategyDirect)
			}
			p := o.Open(t, 1, 10, change)
			o.pay(t, o.Sell(t, p, "a", "b")[0], "t1")
			o.Exec(t, c.damage)
			report := o.run(t, false)
			if report.Balanced == nil || *report.Balanced || strings.Join(promises(report), " ") != c.want {
				t.Errorf("balanced %v, violations %+v, want %s", report.Balanced, report.Violations, c.want)
			}
		})
	}
}
