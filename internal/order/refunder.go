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
	// refundDeadline bounds one call. A provider that hangs counts as a failed
	// try, and the next refunds go on.
	refundDeadline = 10 * time.Second
)

// refundDelays are the waits between the tries of one refund. After the last
// try an operator has to act.
var refundDelays = [...]time.Duration{
	time.Second, 5 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
	10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
}

// Refunder returns owed money. It repeats the call until the provider accepts
// it. The id of the refund makes a repeated call harmless (I8).
type Refunder struct {
	Store interface {
		RefundsDue(ctx context.Context, limit int) ([]store.Payment, error)
		RefundDone(ctx context.Context, id string) error
		RefundFailed(ctx context.Context, id, reason string, delay time.Duration) error
	}
	Providers map[string]payment.Provider
	// OnAlert reports a condition that an operator has to handle. product is 0
	// if the order number is not one of ours.
	OnAlert func(kind alert.Kind, product uint32, err error)
}

// Round makes all refunds that are due.
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
