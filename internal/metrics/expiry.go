package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/order"
)

// Values of the label "by" of Metrics.Expired.
const (
	ExpiredByMessage = "message"
	ExpiredByScan    = "scan"
)

// Expiry has the metrics of delayed messages. It implements order.ExpiryMeter.
type Expiry struct{ messages *prometheus.CounterVec }

// Expiry registers the metrics of delayed messages. Without a broker that supports
// them they do not exist.
func (m *Metrics) Expiry() *Expiry {
	e := &Expiry{factory{m.registry}.counters("seckill_expiry_messages_total", "Delayed messages that expire orders, by result.", "result")}
	countFromZero(e.messages, order.ExpiryResults...)
	return e
}

// Message counts a message.
func (e *Expiry) Message(result order.ExpiryResult) { e.messages.WithLabelValues(string(result)).Inc() }
