package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/sink"
	"seckill/internal/store"
)

// staleSink is the age after which a sender's status is not shown: another instance
// may be the sender by then.
const staleSink = 30 * time.Second

// Sinks has the metrics of the sinks to which this instance sends. They are read
// from memory at each scrape.
type Sinks struct {
	Senders map[string]*sink.Sender // by name

	tries   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

var (
	descSinkLag    = prometheus.NewDesc("seckill_sink_lag_events", "Events that the sender has not read from the feed yet. Only the sending instance reports it.", []string{"sink"}, nil)
	descSinkOldest = prometheus.NewDesc("seckill_sink_oldest_seconds", "Age of the oldest event that the sink has not received, with failed deliveries.", []string{"sink"}, nil)
	descSinkOpen   = prometheus.NewDesc("seckill_sink_open_deliveries", "Open deliveries, by status.", []string{"sink", "status"}, nil)
	descSinkUp     = prometheus.NewDesc("seckill_sink_up", "1 if the sink accepts events, 0 while it is considered down.", []string{"sink"}, nil)
)

// Sinks registers the metrics of sinks. Call it before the senders run.
func (m *Metrics) Sinks(s *Sinks) {
	f := factory{m.registry}
	s.tries = f.counters("seckill_sink_deliveries_total", "Attempts to deliver an event to a sink, by result.", "sink", "result")
	s.seconds = f.histograms("seckill_sink_delivery_seconds", "Duration of one attempt to deliver an event.", seconds, "sink")
	for name := range s.Senders {
		for _, state := range []store.DeliveryState{store.DeliveryDelivered, store.DeliveryRetrying, store.DeliveryFailed} {
			s.tries.WithLabelValues(name, state.String())
		}
	}
	m.Register(s)
}

// Tried records one attempt.
func (s *Sinks) Tried(name string, state store.DeliveryState, took time.Duration) {
	s.tries.WithLabelValues(name, state.String()).Inc()
	s.seconds.WithLabelValues(name).Observe(took.Seconds())
}

// Describe names the metrics.
func (s *Sinks) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSinkLag, descSinkOldest, descSinkOpen, descSinkUp} {
		to <- d
	}
}

// Collect reads the metrics.
func (s *Sinks) Collect(to chan<- prometheus.Metric) {
	for name, sender := range s.Senders {
		status := sender.Status()
		if status.At.IsZero() || time.Since(status.At) > staleSink {
			continue
		}
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		gauge(descSinkUp, oneIf(!status.Down))
		gauge(descSinkLag, float64(status.Lag))
		gauge(descSinkOldest, status.Oldest.Seconds())
		gauge(descSinkOpen, float64(status.Retrying), store.DeliveryRetrying.String())
		gauge(descSinkOpen, float64(status.Waiting), store.DeliveryWaiting.String())
		gauge(descSinkOpen, float64(status.Failed), store.DeliveryFailed.String())
	}
}
