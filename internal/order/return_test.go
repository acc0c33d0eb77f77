package order_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/ledger"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
	"seckill/test/virtual"
)

func releaser(r *rig.Rig) (*order.Releaser, *[]uint32) {
	var freed []uint32
	var mu sync.Mutex
	return &order.Releaser{Store: r.Store, Lanes: r.Lanes, OnReleased: func(product uint32) {
		mu.Lock()
		defer mu.Unlock()
		freed = append(freed, product)
	}, OnTrouble: func(uint32, error) {}}, &freed
}

// sold opens a product and sells and confirms n units.
func sold(t *testing.T, r *rig.Rig, id uint32, n int) (seckill.Product, []seckill.OrderNo) {
	t.Helper()
	p := r.Open(t, id, 10)
	var nos []seckill.OrderNo
	for i := range n {
		nos = append(nos, r.Buy(t, p, fmt.Sprintf("b-%d", i))...)
	}
	r.ConfirmAll(t)
	return p, nos
}

func cancel(t *testing.T, r *rig.Rig, nos ...seckill.OrderNo) {
	t.Helper()
	for _, no := range nos {
		_, err := r.Store.Cancel(t.Context(), no, "test", rig.Operator)
		rig.Must(t, err)
	}
}

func owed(t *testing.T, r *rig.Rig) int {
	t.Helper()
	due, err := r.Store.ReleasesDue(t.Context(), 1000)
	rig.Must(t, err)
	return len(due)
}

func TestRelease_ReturnsTheUnitAndTheMark(t *testing.T) {
	r := rig.New(t)
	p, nos := sold(t, r, 1, 3)
	cancel(t, r, nos[0], nos[1])
	if f := r.Figures(t, p); f.Available != 7 {
		t.Fatalf("%d units free before the release", f.Available)
	}
	releasing, freed := releaser(r)
	rig.Must(t, releasing.Round(t.Context()))
	rig.Must(t, releasing.Round(t.Context()))
	if f := r.Figures(t, p); f.Available != 9 || f.Marked != 1 || owed(t, r) != 0 {
		t.Errorf("%d free, %d marked, %d owed", f.Available, f.Marked, owed(t, r))
	}
	if !slices.Equal(*freed, []uint32{1}) {
		t.Errorf("freed %v", *freed)
	}
	r.Buy(t, p, "b-0") // the limit has room again
}

// If a reply is lost, on either side, the unit returns once.
func TestRelease_LostReplyReleasesOnce(t *testing.T) {
	for name, fail := range map[string]func(*rig.Rig){
		"the ledger's":        func(r *rig.Rig) { r.Ledger.FailAfter("Do", 1) },
		"the ledger, at once": func(r *rig.Rig) { r.Ledger.FailBefore("Do", 1) },
		"the store's":         func(r *rig.Rig) { r.Store.FailAfter("SettleReleases", 1) },
		"the store, at once":  func(r *rig.Rig) { r.Store.FailBefore("SettleReleases", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			p, nos := sold(t, r, 1, 2)
			cancel(t, r, nos[0])
			releasing, _ := releaser(r)
			fail(r)
			_ = releasing.Round(t.Context())
			rig.Must(t, releasing.Round(t.Context()))
			if f := r.Figures(t, p); f.Available != 9 || f.Marked != 1 || owed(t, r) != 0 {
				t.Errorf("%d free, %d marked, %d owed", f.Available, f.Marked, owed(t, r))
			}
		})
	}
}

// The release is stamped with an epoch of the store. The epoch of the ledger
// decides.
func TestRelease_LedgerEpochDecides(t *testing.T) {
	t.Run("higher: the snapshot counted it", func(t *testing.T) {
		r := rig.New(t)
		_, nos := sold(t, r, 1, 2)
		cancel(t, r, nos[0])
		p, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		releasing, freed := releaser(r)
		rig.Must(t, releasing.Round(t.Context()))
		if f := r.Figures(t, p); f.Available != 9 || f.Marked != 1 || owed(t, r) != 0 || len(*freed) != 0 {
			t.Errorf("%d free, %d marked, %d owed, freed %v", f.Available, f.Marked, owed(t, r), *freed)
		}
	})
	t.Run("lower: refused, and tried again", func(t *testing.T) {
		r := rig.New(t)
		_, nos := sold(t, r, 1, 2)
		r.Ledger.FailBefore("Install", 1)
		_, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Refused(t, err, seckill.CodeBusy)
		cancel(t, r, nos[0]) // stamped with the store's epoch, which the ledger does not have
		releasing, _ := releaser(r)
		if releasing.Round(t.Context()) == nil || owed(t, r) != 1 {
			t.Fatalf("%d owed after the ledger refused", owed(t, r))
		}
		p, err := r.Lifecycle.Recover(t.Context(), 1, rig.Operator)
		rig.Must(t, err)
		rig.Must(t, releasing.Round(t.Context()))
		if f := r.Figures(t, p); f.Available != 9 || f.Marked != 1 || owed(t, r) != 0 {
			t.Errorf("%d free, %d marked, %d owed", f.Available, f.Marked, owed(t, r))
		}
	})
}

func TestRelease_ClosedShardDelaysOnlyItsOwn(t *testing.T) {
	r := rig.New(t)
	p, nos := sold(t, r, 1, 1)
	q, others := sold(t, r, 2, 1)
	cancel(t, r, nos[0], others[0])
	rig.Must(t, r.Embedded.Close(t.Context(), ledger.ShardOf(&p, 0)))
	releasing, _ := releaser(r)
	if releasing.Round(t.Context()) == nil {
		t.Error("the round hides the closed shard")
	}
	if f := r.Figures(t, q); f.Available != 10 || owed(t, r) != 1 {
		t.Errorf("%d free of the other product, %d owed", f.Available, owed(t, r))
	}
}

func TestExpirer_WarnsThenCancelsDueOrders(t *testing.T) {
	r := rig.New(t)
	_, nos := sold(t, r, 1, 3)
	var expired []seckill.Order
	expirer := &order.Expirer{Store: r.Store, WarnLead: 5 * time.Minute, OnExpired: func(o []seckill.Order) { expired = append(expired, o...) }}
	kinds := func() (warned, cancelled int) {
		events, err := r.Store.Events(t.Context(), 0, 100)
		rig.Must(t, err)
		for _, e := range events {
			switch e.Kind {
			case seckill.EventOrderExpiring:
				warned++
			case seckill.EventOrderCancelled:
				cancelled++
			}
		}
		return warned, cancelled
	}
	for _, step := range []struct {
		advance           time.Duration
		warned, cancelled int
	}{{0, 0, 0}, {26 * time.Minute, 3, 0}, {time.Minute, 3, 0}, {4 * time.Minute, 3, 3}, {time.Hour, 3, 3}} {
		r.Time.Advance(step.advance)
		rig.Must(t, expirer.Round(t.Context()))
		if warned, cancelled := kinds(); warned != step.warned || cancelled != step.cancelled {
			t.Errorf("after %s more: %d warned, %d cancelled", step.advance, warned, cancelled)
		}
	}
	if len(expired) != 3 || expired[0].Reason != seckill.ReasonExpired || r.Status(t, nos[0]) != seckill.OrderCancelled {
		t.Errorf("expired %+v", expired)
	}
	storetest.CheckPromises(t, r.Store, 1)
}

// refundProvider is a provider that fails on demand.
type refundProvider struct {
	err   error
	hangs bool
	made  map[string]int
}

func (p *refundProvider) Name() string { return "refundProvider" }
func (p *refundProvider) Begin(context.Context, *seckill.Order, string) (payment.Session, error) {
	return payment.Session{}, nil
}
func (p *refundProvider) Notice(context.Context, http.Header, []byte) (payment.Notice, error) {
	return payment.Notice{}, payment.ErrMalformed
}
func (p *refundProvider) Acknowledge(error) payment.Acknowledgement { return payment.Acknowledgement{} }
func (p *refundProvider) Refund(ctx context.Context, refund payment.Refund) error {
	p.made[refund.ID]++
	if p.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.err
}

// owing is a rig that owes one refund.
func owing(t *testing.T) (*rig.Rig, *refundProvider, *order.Refunder, *[]alert.Kind) {
	t.Helper()
	r := rig.New(t)
	_, nos := sold(t, r, 1, 1)
	pay(t, r, nos[0])
	_, err := r.Store.Refund(t.Context(), nos[0], rig.Operator)
	rig.Must(t, err)
	p := &refundProvider{made: map[string]int{}}
	var alerts []alert.Kind
	return r, p, &order.Refunder{
		Store: r.Store, Providers: map[string]payment.Provider{"refundProvider": p},
		OnAlert: func(kind alert.Kind, _ uint32, _ error) { alerts = append(alerts, kind) },
	}, &alerts
}

func pay(t *testing.T, r *rig.Rig, no seckill.OrderNo) {
	t.Helper()
	result, err := r.Store.RecordPayment(t.Context(), payment.Notice{
		Provider: "refundProvider", TradeNo: "t-" + no.String(), OrderNo: no.String(), AmountCents: 999, Currency: "CNY", PaidAt: r.Time.Now(),
	})
	rig.Must(t, err)
	if result != store.PaymentPaid {
		t.Fatalf("the payment did %d", result)
	}
}

func refunds(t *testing.T, r *rig.Rig) []store.Payment {
	t.Helper()
	list, err := r.Store.Payments(t.Context(), store.PaymentFilter{Type: "refund", Limit: 100})
	rig.Must(t, err)
	return list
}

func TestRefund_RepeatedUntilTheProviderAccepts(t *testing.T) {
	r, refundProvider, refunder, alerts := owing(t)
	refundProvider.err = errors.New("try later")
	for try := 1; try <= 3; try++ {
		rig.Must(t, refunder.Round(t.Context()))
		rig.Must(t, refunder.Round(t.Context())) // before its time nothing happens
		if got := refunds(t, r)[0]; got.Status != "due" || got.Attempts != try {
			t.Fatalf("after try %d the refund is %+v", try, got)
		}
		r.Time.Advance(time.Minute)
	}
	refundProvider.err = nil
	r.Store.FailBefore("RefundDone", 1) // accepted, but the reply is lost: the call is repeated
	if refunder.Round(t.Context()) == nil {
		t.Error("the round hides the outage")
	}
	rig.Must(t, refunder.Round(t.Context()))
	rig.Must(t, refunder.Round(t.Context()))
	if got := refunds(t, r); len(got) != 1 || got[0].Status != "done" || refundProvider.made[got[0].ID] != 5 || len(refundProvider.made) != 1 {
		t.Errorf("refunds %+v, calls %v", got, refundProvider.made)
	}
	if len(*alerts) != 0 {
		t.Errorf("alerts are %v", *alerts)
	}
	storetest.CheckPromises(t, r.Store, 1)
}

func TestRefund_RefusedRefundAlertsAtOnce(t *testing.T) {
	r, refundProvider, refunder, alerts := owing(t)
	refundProvider.err = fmt.Errorf("refund: %w", payment.ErrRefused)
	rig.Must(t, refunder.Round(t.Context()))
	r.Time.Advance(24 * time.Hour)
	rig.Must(t, refunder.Round(t.Context()))
	got := refunds(t, r)[0]
	if got.Status != "failed" || refundProvider.made[got.ID] != 1 {
		t.Errorf("the refund is %+v after %d calls", got, refundProvider.made[got.ID])
	}
	// The alert text is the label of a metric, so it must not contain the id of
	// the refund.
	if !slices.Equal(*alerts, []alert.Kind{alert.RefundFailed}) {
		t.Errorf("alerts are %q", *alerts)
	}
}

func TestRefund_AlertsAfterTheLastTry(t *testing.T) {
	r, refundProvider, refunder, alerts := owing(t)
	delete(refunder.Providers, "refundProvider") // no longer configured
	for range 20 {
		rig.Must(t, refunder.Round(t.Context()))
		// While a refund will be retried, reconcile reports nothing, however
		// long it waits.
		findings, err := r.Store.CheckMoney(t.Context(), 1, 10)
		rig.Must(t, err)
		if status := refunds(t, r)[0].Status; status == "due" && len(findings) != 0 {
			t.Errorf("a waiting refund is reported: %+v", findings)
		}
		r.Time.Advance(7 * time.Hour)
	}
	if got := refunds(t, r)[0]; got.Status != "failed" || len(*alerts) != 1 || len(refundProvider.made) != 0 {
		t.Errorf("the refund is %+v, alerts %v", got, *alerts)
	}
}

// refundStore owes two refunds.
type refundStore struct{ done, failed []string }

func (l *refundStore) RefundsDue(context.Context, int) ([]store.Payment, error) {
	return []store.Payment{{ID: "hangs", Provider: "slow"}, {ID: "passes", Provider: "quick"}}, nil
}

func (l *refundStore) RefundDone(_ context.Context, id string) error {
	l.done = append(l.done, id)
	return nil
}

func (l *refundStore) RefundFailed(ctx context.Context, id, _ string, _ time.Duration) error {
	l.failed = append(l.failed, id)
	return ctx.Err()
}

func TestRefund_HangingProviderCountsAsATryAndDelaysNoOther(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		owed := &refundStore{}
		refunder := &order.Refunder{Store: owed, OnAlert: func(alert.Kind, uint32, error) {}, Providers: map[string]payment.Provider{
			"slow": &refundProvider{made: map[string]int{}, hangs: true}, "quick": &refundProvider{made: map[string]int{}},
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // the timeout of a round
		defer cancel()
		rig.Must(t, refunder.Round(ctx))
		if !slices.Equal(owed.done, []string{"passes"}) || !slices.Equal(owed.failed, []string{"hangs"}) {
			t.Errorf("done %v, failed %v", owed.done, owed.failed)
		}
	})
}

// hesitantLedger decides the first order of every release, and leaves the
// others undecided.
type hesitantLedger struct{ ledger.Writer }

func (h hesitantLedger) Do(ctx context.Context, shard ledger.Shard, write ledger.Write) (ledger.Result, error) {
	orders := write.(ledger.Release).Orders
	result, err := h.Writer.Do(ctx, shard, ledger.Release{Orders: orders[:1]})
	for len(result.Verdicts) > 0 && len(result.Verdicts) < len(orders) {
		result.Verdicts = append(result.Verdicts, ledger.Verdict{Code: ledger.VerdictUndecided})
	}
	return result, err
}

// A release is settled when the ledger has decided it, and not before.
func TestRelease_UndecidedReleaseStaysOwed(t *testing.T) {
	r := rig.New(t)
	p, nos := sold(t, r, 1, 4)
	cancel(t, r, nos[:3]...)
	releasing, _ := releaser(r)
	releasing.Lanes = hesitantLedger{r.Lanes}
	r.Store.FailBefore("SettleReleases", 1)
	if releasing.Round(t.Context()) == nil || owed(t, r) != 3 {
		t.Fatalf("%d owed after the first step, whose result the store did not record", owed(t, r))
	}
	rig.Must(t, releasing.Round(t.Context()))
	if f := r.Figures(t, p); f.Available != 9 || f.Marked != 1 || owed(t, r) != 0 {
		t.Errorf("%d free, %d marked, %d owed", f.Available, f.Marked, owed(t, r))
	}
}
