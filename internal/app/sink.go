package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"seckill/internal/alert"
	"seckill/internal/api"
	"seckill/internal/background"
	"seckill/internal/config"
	"seckill/internal/fault"

	"seckill/internal/metrics"
	"seckill/internal/sink"
	"seckill/internal/sink/sinkkafka"
	"seckill/internal/sink/sinkpulsar"
	"seckill/internal/sink/sinkrocket"
	"seckill/internal/sink/sinkwebhook"
	"seckill/internal/store"
)

const (
	sinkEvery   = 500 * time.Millisecond
	sinkTimeout = time.Minute // of a round, which ends by itself after a part of it
)

// sinks is what sends events to other systems. Without sinks it is empty.
type sinks struct {
	admin   sink.Admin
	senders []*sink.Sender
	figures *metrics.Sinks
}

// buildSinks wires the sinks.
func (p *parts) buildSinks() {
	p.sinks.admin = sink.Admin{Store: p.store, Source: "/seckill/" + p.storeID, Targets: make(map[string]sink.Target), Now: fault.Now}
	if len(p.cfg.Sinks) == 0 {
		return
	}
	p.sinks.figures = &metrics.Sinks{Senders: make(map[string]*sink.Sender)}
	complaints := alert.NewThrottledLog(p.log, fault.Now)
	for i := range p.cfg.Sinks {
		cfg := &p.cfg.Sinks[i]
		target := &sink.Lazy{Open: func(ctx context.Context) (sink.Target, error) { return p.openTarget(ctx, cfg) }}
		sender := sink.NewSender(sink.Options{
			Name: cfg.Name, Source: p.sinks.admin.Source, Target: target, Store: p.store, Data: api.EventData,
			Delays: cfg.RetryDelays, RatePerSecond: cfg.RatePerSecond, Concurrency: cfg.Concurrency,
			AtEnd: cfg.From == config.SinkFromNow, Logger: p.log, Observer: sinkObserver{p.sinks.figures, p.alerter, complaints},
		})
		p.sinks.admin.Sinks = append(p.sinks.admin.Sinks, sink.Info{Name: cfg.Name, Kind: cfg.Kind, Target: targetOf(cfg)})
		p.sinks.admin.Targets[cfg.Name] = target
		p.sinks.senders = append(p.sinks.senders, sender)
		p.sinks.figures.Senders[cfg.Name] = sender
	}
	p.metrics.Sinks(p.sinks.figures)
}

// targetOf is where a sink sends to, without secrets.
func targetOf(cfg *config.Sink) string {
	if cfg.Kind == config.SinkWebhook {
		return cfg.URL.String()
	}
	return cfg.Topic
}

// openTarget makes the target of a sink.
func (p *parts) openTarget(ctx context.Context, cfg *config.Sink) (sink.Target, error) {
	switch cfg.Kind {
	case config.SinkKafka:
		return opened[sink.Target](sinkkafka.Open(ctx, sinkkafka.Options{
			Link: p.brokers.kafka, Topic: cfg.Topic, Logger: p.log,
			Create: p.cfg.Kafka.Create, Partitions: p.cfg.Kafka.Partitions, Replicas: p.cfg.Kafka.Replicas,
		}))
	case config.SinkRocketMQ:
		return opened[sink.Target](sinkrocket.Open(ctx, sinkrocket.Options{Link: p.brokers.rocket, Topic: cfg.Topic, Logger: p.log}))
	case config.SinkPulsar:
		return opened[sink.Target](sinkpulsar.Open(ctx, sinkpulsar.Options{Link: p.brokers.pulsar, Topic: cfg.Topic, Logger: p.log}))
	case config.SinkWebhook:
		return sinkwebhook.New(sinkwebhook.Options{
			URL: string(cfg.URL), Secret: cfg.Secret.Reveal(), PreviousSecret: cfg.PreviousSecret.Reveal(), AllowPrivate: cfg.AllowPrivate,
		})
	}
	return nil, fmt.Errorf("unknown kind of sink %q", cfg.Kind)
}

// sinkDuties are one duty per sink.
func (p *parts) sinkDuties() (loops []*background.Loop) {
	for i, sender := range p.sinks.senders {
		loops = append(loops, &background.Loop{
			Name: "sink:" + p.sinks.admin.Sinks[i].Name, Every: sinkEvery, Timeout: sinkTimeout, Round: sender.Round, StopsSoon: true,
		})
	}
	return loops
}

// sinkObserver takes what senders do to metrics and alerts.
type sinkObserver struct {
	*metrics.Sinks
	alerter *alert.Alerter
	log     *alert.ThrottledLog // a receiver may refuse thousands
}

func (o sinkObserver) Failed(name string, d store.Delivery) {
	o.log.Say(slog.LevelWarn, "failed at "+name, "sink: delivery failed, later events of its order wait behind it", "sink", name, "event", d.EventID, "key", d.Key, "attempts", d.Attempts, "error", d.Error)
	o.alerter.RaiseSink(alert.SinkFailed, name, fmt.Errorf("sink %s: event %d of %s failed after %d tries: %s", name, d.EventID, d.Key, d.Attempts, d.Error))
}

func (o sinkObserver) Crowded(name string, retrying int64, cause string) {
	o.alerter.RaiseSink(alert.SinkRefuses, name, fmt.Errorf("sink %s: %d deliveries are retried, too many to retry each for long; some were kept as failed after 3 tries: %s", name, retrying, cause))
}

func (o sinkObserver) Lagging(name string, oldest time.Duration, cause string) {
	if cause == "" {
		cause = "it takes events more slowly than they come"
	}
	o.alerter.RaiseSink(alert.SinkLags, name, fmt.Errorf("sink %s: the oldest event that it does not have is %s old: %s", name, oldest.Round(time.Second), cause))
}
