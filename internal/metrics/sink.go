package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/sink"
	"seckill/internal/store"
)

// staleSink is the age at which a sender's figures count no more: another
// instance may send by now.
const staleSink = 30 * time.Second

// Sinks are figures of the sinks to which this instance sends, read from memory
// when Prometheus asks.
type Sinks struct {
	Senders map[string]*sink.Sender // by name

	tries   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

var (
	descSinkLag    = prometheus.NewDesc("seckill_sink_lag_events", "Events that were not taken from the feed for a sink yet. Only the instance that sends has it.", []string{"sink"}, nil)
	descSinkOldest = prometheus.NewDesc("seckill_sink_oldest_seconds", "Age of the oldest event that a sink does not have, failed ones included.", []string{"sink"}, nil)
	descSinkOpen   = prometheus.NewDesc("seckill_sink_open_deliveries", "Deliveries that are not settled, by status.", []string{"sink", "status"}, nil)
	descSinkUp     = prometheus.NewDesc("seckill_sink_up", "Whether a sink takes events: 0 while it counts as down.", []string{"sink"}, nil)
)

// Sinks registers the figures of sinks. It has to be called before senders run.
func (m *Metrics) Sinks(s *Sinks) {
	f := factory{m.registry}
	s.tries = f.counters("seckill_sink_deliveries_total", "Tries to deliver an event to a sink, by what became of the delivery.", "sink", "result")
	s.seconds = f.histograms("seckill_sink_delivery_seconds", "Duration of one try.", seconds, "sink")
	for name := range s.Senders {
		for _, state := range []store.DeliveryState{store.DeliveryDelivered, store.DeliveryRetrying, store.DeliveryFailed} {
			s.tries.WithLabelValues(name, state.String())
		}
	}
	m.Register(s)
}

// Tried sees one try.
func (s *Sinks) Tried(name string, state store.DeliveryState, took time.Duration) {
	s.tries.WithLabelValues(name, state.String()).Inc()
	s.seconds.WithLabelValues(name).Observe(took.Seconds())
}

// Describe names the figures.
func (s *Sinks) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSinkLag, descSinkOldest, descSinkOpen, descSinkUp} {
		to <- d
	}
}

// Collect reads the figures.
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
