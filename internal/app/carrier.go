package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/alert"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/config"
	"seckill/internal/kafkalink"
	"seckill/internal/keyring"
	"seckill/internal/metrics"
	"seckill/internal/relay"
)

// firstTry is how long a start waits for the broker. Without it the engine
// starts all the same: workers read the outbox.
const firstTry = 10 * time.Second

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
	secrets := p.cfg.Token.Secrets()
	for i := range secrets {
		secrets[i] = keyring.Derive(secrets[i], "seckill carrier")
	}
	ring, err := keyring.New(secrets...)
	if err != nil {
		return err
	}
	open, err := p.tryCarrier(ctx)
	if err != nil {
		return err
	}
	meter := carrierMeter{p.metrics.Carrier(func(ctx context.Context) (int64, error) { return p.line.Lag(ctx) }), p.alerter}
	p.line = relay.New(relay.Options{
		Name: p.name + ".relay", Outbox: p.queue, Open: open, Store: p.store, Meter: meter, Logger: p.log,
		Codec: &carrier.Codec{Store: p.storeID, Ring: ring},
	})
	return nil
}

// tryCarrier connects for the first time, so that a wrong setup is told at the
// start, and returns how to connect from then on.
func (p *parts) tryCarrier(ctx context.Context) (func(context.Context) (carrier.Carrier, error), error) {
	trying, cancel := context.WithTimeout(ctx, firstTry)
	defer cancel()
	first, err := p.openCarrier(trying)
	if errors.Is(err, carrier.ErrSetup) {
		return nil, fmt.Errorf("connect to the broker (queue.kind %s): %w", p.cfg.Queue.Kind, err)
	}
	if err != nil {
		p.log.Warn("broker not reached at start; workers read the outbox until it is", "error", err)
		return p.openCarrier, nil
	}
	return func(context.Context) (carrier.Carrier, error) { return first, nil }, nil
}

// openCarrier is the one place that knows the carriers.
func (p *parts) openCarrier(ctx context.Context) (carrier.Carrier, error) {
	switch p.cfg.Queue.Kind {
	case config.QueueKafka:
		link, err := p.kafkaLink()
		if err != nil {
			return nil, err
		}
		opened, err := carrierkafka.Open(ctx, carrierkafka.Options{
			Link: link, Topic: p.cfg.Queue.Topic, Group: p.cfg.Queue.Group, Logger: p.log,
			Create: p.cfg.Kafka.Create, Partitions: p.cfg.Kafka.Partitions, Replicas: p.cfg.Kafka.Replicas,
		})
		if err != nil {
			return nil, err // a nil *Carrier in the interface would look open
		}
		return opened, nil
	case config.QueueRocketMQ, config.QueuePulsar:
		return nil, fmt.Errorf("%w: queue.kind %s is not built yet", carrier.ErrSetup, p.cfg.Queue.Kind)
	}
	return nil, fmt.Errorf("%w: unknown queue.kind %q", carrier.ErrSetup, p.cfg.Queue.Kind)
}

// kafkaLink is how Kafka is reached.
func (p *parts) kafkaLink() (kafkalink.Options, error) {
	spoken, err := p.cfg.Kafka.TLSConfig()
	if err != nil {
		return kafkalink.Options{}, fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	}
	return kafkalink.Options{
		Brokers: p.cfg.Kafka.Brokers, TLS: spoken, SASL: p.cfg.Kafka.SASL,
		Username: p.cfg.Kafka.Username, Password: string(p.cfg.Kafka.Password.Bytes()),
	}, nil
}
