package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/carrier/carrierrocket"
	"seckill/internal/client/kafkaclient"
	"seckill/internal/client/pulsarclient"
	"seckill/internal/client/rocketclient"
	"seckill/internal/config"
)

// brokers say how each of them is reached.
type brokers struct {
	kafka  kafkaclient.Options
	rocket rocketclient.Options
	pulsar pulsarclient.Options
}

func (p *parts) buildBrokers() error {
	k, r, q := &p.cfg.Kafka, &p.cfg.RocketMQ, &p.cfg.Pulsar
	kafkaTLS, kafkaErr := k.TLSConfig()
	rocketTLS, rocketErr := r.TLSConfig()
	pulsarTLS, pulsarErr := q.TLSConfig()
	p.brokers = brokers{
		kafka:  kafkaclient.Options{Brokers: k.Brokers, TLS: kafkaTLS, SASL: k.SASL, Username: k.Username, Password: k.Password.Reveal()},
		rocket: rocketclient.Options{Endpoint: r.Endpoint, TLS: rocketTLS, AccessKey: r.AccessKey, SecretKey: r.SecretKey.Reveal()},
		pulsar: pulsarclient.Options{Addresses: q.Addresses(), TLS: pulsarTLS, Token: q.Token.Reveal()},
	}
	return errors.Join(kafkaErr, rocketErr, pulsarErr)
}

// openCarrier connects the broker that carries reservations.
func (p *parts) openCarrier(ctx context.Context) (carrier.Carrier, error) {
	q := &p.cfg.Queue
	switch q.Kind {
	case config.QueueKafka:
		return opened[carrier.Carrier](carrierkafka.Open(ctx, carrierkafka.Options{
			Link: p.brokers.kafka, Topic: q.Topic, Group: q.Group, Logger: p.log,
			Create: p.cfg.Kafka.Create, Partitions: p.cfg.Kafka.Partitions, Replicas: p.cfg.Kafka.Replicas,
		}))
	case config.QueueRocketMQ:
		return opened[carrier.Carrier](carrierrocket.Open(ctx, carrierrocket.Options{Link: p.brokers.rocket, Topic: q.Topic, Group: q.Group, Logger: p.log}))
	case config.QueuePulsar:
		return opened[carrier.Carrier](carrierpulsar.Open(ctx, carrierpulsar.Options{Link: p.brokers.pulsar, Topic: q.Topic, Group: q.Group, Logger: p.log}))
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
			if err := background.CallWithin(ctx, close); err != nil {
				p.log.Warn("stop: "+what+" did not answer; nothing is lost", "error", err)
			}
		})
	}
	for name, target := range p.sinks.admin.Targets {
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
		return opened[carrier.Delayer](carrierrocket.Open(ctx, carrierrocket.Options{
			Link: p.brokers.rocket, Topic: q.ExpireTopic, Group: q.ExpireGroup(), Delayed: true, Logger: p.log,
		}))
	case config.QueuePulsar:
		return opened[carrier.Delayer](carrierpulsar.Open(ctx, carrierpulsar.Options{
			Link: p.brokers.pulsar, Topic: q.ExpireTopic, Group: q.ExpireGroup(), Logger: p.log,
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
