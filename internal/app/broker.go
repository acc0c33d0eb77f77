package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/carrier/carrierrocket"
	"seckill/internal/config"
	"seckill/internal/grace"
	"seckill/internal/kafkalink"
	"seckill/internal/pulsarlink"
	"seckill/internal/rocketlink"
)

// openCarrier connects the broker that carries reservations.
func (p *parts) openCarrier(ctx context.Context) (carrier.Carrier, error) {
	q := &p.cfg.Queue
	switch q.Kind {
	case config.QueueKafka:
		link, err := p.kafkaLink()
		if err != nil {
			return nil, err
		}
		return opened[carrier.Carrier](carrierkafka.Open(ctx, carrierkafka.Options{
			Link: link, Topic: q.Topic, Group: q.Group, Logger: p.log,
			Create: p.cfg.Kafka.Create, Partitions: p.cfg.Kafka.Partitions, Replicas: p.cfg.Kafka.Replicas,
		}))
	case config.QueueRocketMQ:
		link, err := p.rocketLink()
		if err != nil {
			return nil, err
		}
		return opened[carrier.Carrier](carrierrocket.Open(ctx, carrierrocket.Options{Link: link, Topic: q.Topic, Group: q.Group, Logger: p.log}))
	case config.QueuePulsar:
		return opened[carrier.Carrier](carrierpulsar.Open(ctx, carrierpulsar.Options{Link: p.pulsarLink(), Topic: q.Topic, Group: q.Group, Logger: p.log}))
	}
	return nil, fmt.Errorf("%w: unknown queue.kind %q", carrier.ErrSetup, q.Kind)
}

// leaveDeadline bounds the leaving of brokers and sinks.
const leaveDeadline = 4 * time.Second

// leaveBrokers gives back messages and closes connections. What brokers and
// receivers have are copies, so one that does not answer is no failure of a
// stop: messages that are not given back come again.
func (p *parts) leaveBrokers() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveDeadline)
	defer cancel()
	var leaving sync.WaitGroup
	leave := func(what string, close func() error) {
		leaving.Go(func() {
			if err := grace.Within(ctx, close); err != nil {
				p.log.Warn("stop: "+what+" did not answer; nothing is lost", "error", err)
			}
		})
	}
	for name, target := range p.sinks.desk.Targets {
		leave("the sink "+name, func() error { return target.Close(ctx) })
	}
	if p.line != nil {
		leave("the broker", func() error { return p.line.Close(ctx) })
	}
	if p.expiry != nil {
		leave("the broker of delayed messages", func() error { return p.expiry.Close(ctx) })
	}
	leaving.Wait()
}

// openDelayer connects the broker of delayed messages.
func (p *parts) openDelayer(ctx context.Context) (carrier.Delayer, error) {
	q := &p.cfg.Queue
	switch q.Kind {
	case config.QueueRocketMQ:
		link, err := p.rocketLink()
		if err != nil {
			return nil, err
		}
		return opened[carrier.Delayer](carrierrocket.OpenDelayer(ctx, carrierrocket.Options{
			Link: link, Topic: q.ExpireTopic, Group: q.ExpireGroup(), Logger: p.log,
		}))
	case config.QueuePulsar:
		return opened[carrier.Delayer](carrierpulsar.OpenDelayer(ctx, carrierpulsar.Options{
			Link: p.pulsarLink(), Topic: q.ExpireTopic, Group: q.ExpireGroup(), Logger: p.log,
		}))
	}
	return nil, fmt.Errorf("%w: queue.kind %q has no delayed messages", carrier.ErrSetup, q.Kind)
}

// opened keeps a nil pointer out of an interface, in which it would look open.
func opened[I any, T any](one T, err error) (I, error) {
	if err != nil {
		var none I
		return none, err
	}
	return any(one).(I), nil
}

// kafkaLink is how Kafka is reached.
func (p *parts) kafkaLink() (kafkalink.Options, error) {
	k := &p.cfg.Kafka
	spoken, err := k.TLSConfig()
	if err != nil {
		return kafkalink.Options{}, fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	}
	return kafkalink.Options{Brokers: k.Brokers, TLS: spoken, SASL: k.SASL, Username: k.Username, Password: string(k.Password.Bytes())}, nil
}

// rocketLink is how RocketMQ is reached.
func (p *parts) rocketLink() (rocketlink.Options, error) {
	r := &p.cfg.RocketMQ
	spoken, err := r.TLSConfig()
	if err != nil {
		return rocketlink.Options{}, fmt.Errorf("%w: %w", carrier.ErrSetup, err)
	}
	return rocketlink.Options{Endpoint: r.Endpoint, TLS: spoken, AccessKey: r.AccessKey, SecretKey: string(r.SecretKey.Bytes())}, nil
}

// pulsarLink is how Pulsar is reached.
func (p *parts) pulsarLink() pulsarlink.Options {
	return pulsarlink.Options{URL: p.cfg.Pulsar.URL, Token: string(p.cfg.Pulsar.Token.Bytes()), CAFile: p.cfg.Pulsar.TLSCA}
}
