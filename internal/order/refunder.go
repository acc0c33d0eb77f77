package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/fault"
	"seckill/internal/payment"
	"seckill/internal/store"
)

const (
	refundPerRound = 100
	// refundDeadline bounds one call, so that a provider that hangs counts as a
	// failed try and the refunds behind it have their turn.
	refundDeadline = 10 * time.Second
)

// refundDelays are the waits between tries at one refund; past the last, it
// needs care.
var refundDelays = [...]time.Duration{
	time.Second, 5 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
	10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
}

// Refunder returns money that is owed. The provider is told until it has
// accepted; the refund's own id makes a repeated call harmless (I8).
type Refunder struct {
	Store interface {
		RefundsDue(ctx context.Context, limit int) ([]store.Payment, error)
		RefundDone(ctx context.Context, id string) error
		RefundFailed(ctx context.Context, id, reason string, delay time.Duration) error
	}
	Providers map[string]payment.Provider
	// OnAlert is told what an operator has to look at. product is 0 if the money
	// names no order of ours.
	OnAlert func(kind alert.Kind, product uint32, err error)
}

// Round makes all refunds that are due now.
func (r *Refunder) Round(ctx context.Context) error {
	due, err := r.Store.RefundsDue(ctx, refundPerRound)
	if err != nil {
		return err
	}
	for _, refund := range due {
		if err := r.refund(ctx, refund); err != nil {
			return err
		}
	}
	return nil
}

func (r *Refunder) refund(ctx context.Context, owed store.Payment) error {
	err := r.tell(ctx, owed)
	if err == nil {
		fault.Point("refund.after_provider")
		return r.Store.RefundDone(ctx, owed.ID)
	}
	delay := time.Duration(-1)
	if owed.Attempts < len(refundDelays) && !errors.Is(err, payment.ErrRefused) {
		delay = refundDelays[max(owed.Attempts, 0)]
	} else {
		no, _ := seckill.ParseOrderNo(owed.OrderNo) // the zero number is of product 0
		r.OnAlert(alert.RefundFailed, no.ProductID(), fmt.Errorf("refund %s of order %s: %w", owed.ID, owed.OrderNo, err))
	}
	return r.Store.RefundFailed(ctx, owed.ID, err.Error(), delay)
}

func (r *Refunder) tell(ctx context.Context, owed store.Payment) error {
	provider := r.Providers[owed.Provider]
	if provider == nil {
		return fmt.Errorf("no payment provider %q is configured", owed.Provider)
	}
	ctx, cancel := context.WithTimeout(ctx, refundDeadline)
	defer cancel()
	return provider.Refund(ctx, payment.Refund{
		ID: owed.ID, TradeNo: owed.TradeNo, OrderNo: owed.OrderNo,
		AmountCents: owed.AmountCents, Currency: owed.Currency, Reason: owed.Reason,
	})
}
