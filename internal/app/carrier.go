package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/alert"
	"seckill/internal/auth"
	"seckill/internal/carrier"
	"seckill/internal/carrier/relay"
	"seckill/internal/metrics"
)

// firstTry is how long a start waits for the broker. Without it the engine
// starts all the same: workers read the outbox.
const firstTry = 2 * time.Second

// carrierMeter counts, and tells an operator.
type carrierMeter struct {
	*metrics.Carrier
	alerter *alert.Alerter
}

func (m carrierMeter) Rejected(why string) {
	m.Carrier.Rejected(why)
	m.alerter.Raise(alert.Rejected, 0, fmt.Errorf("a message was settled unread: %s", why))
}

func (m carrierMeter) Bypassed(cause error) {
	m.Carrier.Bypassed(cause)
	if cause != nil {
		m.alerter.Raise(alert.BrokerUnwell, 0, cause)
	}
}

// buildLine wires the broker between outbox and workers, where one is
// configured.
func (p *parts) buildLine(ctx context.Context) error {
	if !p.cfg.Carried() {
		return nil
	}
	codec, err := p.carrierCodec()
	if err != nil {
		return err
	}
	q := &p.cfg.Queue
	open, err := tryBroker(ctx, p, told(p, p.openCarrier, "reservations travel over", q.Topic, q.Group))
	if err != nil {
		return err
	}
	meter := carrierMeter{p.metrics.Carrier(), p.alerter}
	p.line = relay.New(relay.Options{
		Name: p.name + ".relay", Outbox: p.queue, Open: open, Store: p.store, Meter: meter, Logger: p.log,
		Codec: codec,
	})
	return nil
}

// carrierCodec signs and reads the messages of this store.
func (p *parts) carrierCodec() (*carrier.Codec, error) {
	secrets := p.cfg.Token.Secrets()
	for i := range secrets {
		secrets[i] = auth.DeriveKey(secrets[i], "seckill carrier")
	}
	ring, err := auth.NewRing(secrets...)
	if err != nil {
		return nil, err
	}
	return &carrier.Codec{Store: p.storeID, Ring: ring}, nil
}

// told is open, with a line in the log after each success.
func told[T any](p *parts, open func(context.Context) (T, error), what, topic, group string) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		one, err := open(ctx)
		if err == nil {
			p.log.Info(what+" "+p.cfg.Queue.Kind, "topic", topic, "group", group)
		}
		return one, err
	}
}

// tryBroker connects for the first time, so that a wrong setup is told at the
// start, and returns how to connect from then on: what the first try brought is
// what the first call returns, so that a broker that is away is told at once. It
// is no reason not to start.
func tryBroker[T any](ctx context.Context, p *parts, open func(context.Context) (T, error)) (func(context.Context) (T, error), error) {
	trying, cancel := context.WithTimeout(ctx, firstTry)
	defer cancel()
	first, firstErr := open(trying)
	if errors.Is(firstErr, carrier.ErrSetup) {
		return nil, fmt.Errorf("connect to the broker (queue.kind %s): %w", p.cfg.Queue.Kind, firstErr)
	}
	spent := false
	return func(ctx context.Context) (T, error) {
		if !spent {
			spent = true
			return first, firstErr
		}
		return open(ctx)
	}, nil
}
