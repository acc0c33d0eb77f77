package order

import (
	"context"
	"errors"
	"time"

	"seckill"
)

const (
	expirePerRound = 500
	// expireLast is the largest page that ends a round. Orders that become due
	// meanwhile make small pages, and wait for the next round. A full page is
	// smaller if others cancelled some of its orders first.
	expireLast = expirePerRound / 2
)

// Expirer cancels orders that were not paid in time. Only the clock of the
// store counts.
type Expirer struct {
	Store interface {
		Expire(ctx context.Context, limit int) ([]seckill.Order, error)
		WarnExpiring(ctx context.Context, lead time.Duration, limit int) (int, error)
	}
	// WarnLead is how long before its end an order gets the event
	// order.expiring.
	WarnLead time.Duration
	// OnExpired gets each batch, so that the releases are sent at once.
	OnExpired func(orders []seckill.Order)
}

// Round cancels all due orders and then writes the warnings: many warnings must
// not delay the return of units.
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
