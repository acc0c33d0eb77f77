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
	codec, err := p.carrierCodec()
	if err != nil {
		return err
	}
	open, err := tryBroker(ctx, p, p.openCarrier, "broker not reached at start; workers read the outbox until it is")
	if err != nil {
		return err
	}
	meter := carrierMeter{p.metrics.Carrier(func(ctx context.Context) (int64, error) { return p.line.Lag(ctx) }), p.alerter}
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
		secrets[i] = keyring.Derive(secrets[i], "seckill carrier")
	}
	ring, err := keyring.New(secrets...)
	if err != nil {
		return nil, err
	}
	return &carrier.Codec{Store: p.storeID, Ring: ring}, nil
}

// tryBroker connects for the first time, so that a wrong setup is told at the
// start, and returns how to connect from then on. A broker that is away is no
// reason not to start.
func tryBroker[T any](ctx context.Context, p *parts, open func(context.Context) (T, error), away string) (func(context.Context) (T, error), error) {
	trying, cancel := context.WithTimeout(ctx, firstTry)
	defer cancel()
	first, err := open(trying)
	if errors.Is(err, carrier.ErrSetup) {
		return nil, fmt.Errorf("connect to the broker (queue.kind %s): %w", p.cfg.Queue.Kind, err)
	}
	if err != nil {
		p.log.Warn(away, "error", err)
		return open, nil
	}
	return func(context.Context) (T, error) { return first, nil }, nil
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

// openDelayer is the one place that knows the brokers of delayed messages.
func (p *parts) openDelayer(ctx context.Context) (carrier.Delayer, error) {
	switch p.cfg.Queue.Kind {
	case config.QueueRocketMQ:
		return nil, fmt.Errorf("%w: delayed messages of queue.kind %s are not built yet", carrier.ErrSetup, p.cfg.Queue.Kind)
	case config.QueuePulsar:
		return nil, fmt.Errorf("%w: delayed messages of queue.kind %s are not built yet", carrier.ErrSetup, p.cfg.Queue.Kind)
	}
	return nil, fmt.Errorf("%w: queue.kind %q has no delayed messages", carrier.ErrSetup, p.cfg.Queue.Kind)
}
