package order

import (
	"context"
	"errors"
	"time"

	"seckill"
)

const (
	expirePerRound = 500
	// expireLast is the most that the last page of a round has. What becomes due
	// meanwhile fills a page in part only, and waits for the next round. A full page
	// is shorter if others cancelled some of it first.
	expireLast = expirePerRound / 2
)

// Expirer cancels orders that were not paid in time. The store's index of due
// orders is the only clock that counts.
type Expirer struct {
	Store interface {
		Expire(ctx context.Context, limit int) ([]seckill.Order, error)
		WarnExpiring(ctx context.Context, lead time.Duration, limit int) (int, error)
	}
	// WarnLead is how long before the end order.expiring is written.
	WarnLead time.Duration
	// OnExpired sees each batch, so that the releases go out at once.
	OnExpired func(orders []seckill.Order)
}

// Round cancels all that is due now, and then warns: a hundred thousand warnings
// must not hold up the units of those who did not pay.
func (e *Expirer) Round(ctx context.Context) error {
	return errors.Join(e.expire(ctx), e.warn(ctx))
}

func (e *Expirer) warn(ctx context.Context) error {
	for {
		n, err := e.Store.WarnExpiring(ctx, e.WarnLead, expirePerRound)
		if err != nil || n <= expireLast {
			return err
		}
	}
}

func (e *Expirer) expire(ctx context.Context) error {
	for {
		orders, err := e.Store.Expire(ctx, expirePerRound)
		if len(orders) > 0 {
			e.OnExpired(orders)
		}
		if err != nil || len(orders) <= expireLast {
			return err
		}
	}
}
