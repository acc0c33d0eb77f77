package app

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/metrics"
	"seckill/internal/order"
)

// expiryMeter counts, and tells an operator of messages that are not ours.
type expiryMeter struct {
	*metrics.Expiry
	alerter *alert.Alerter
}

func (m expiryMeter) Message(result order.ExpiryResult) {
	m.Expiry.Message(result)
	switch result {
	case order.Forged, order.Foreign, order.Poison:
		m.alerter.Raise(alert.Rejected, 0, fmt.Errorf("an expiry message was settled unread: %s", result))
	}
}

// buildExpiry wires delayed messages between workers and store, where the
// broker has them.
func (p *parts) buildExpiry(ctx context.Context) error {
	if !p.cfg.Delays() {
		return nil
	}
	codec, err := p.carrierCodec()
	if err != nil {
		return err
	}
	q := &p.cfg.Queue
	open, err := tryBroker(ctx, p, told(p, p.openDelayer, "unpaid orders expire by delayed messages of", q.ExpireTopic, q.ExpireGroup()))
	if err != nil {
		return err
	}
	p.expiry = order.NewExpiryScheduler(order.ExpiryOptions{
		Open: open, Codec: codec, Store: p.store, Meter: expiryMeter{p.metrics.Expiry(), p.alerter},
		OnExpired: p.expired(metrics.ExpiredByMessage), Now: time.Now, Logger: p.log,
	})
	return nil
}

// expired sees to orders that were not paid in time.
func (p *parts) expired(by string) func(orders []seckill.Order) {
	return func(orders []seckill.Order) {
		p.metrics.Expired.WithLabelValues(by).Add(float64(len(orders)))
		for i := range orders {
			p.orders.UnitsBack(&orders[i])
		}
	}
}
