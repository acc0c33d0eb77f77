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

// Expiry are the figures of delayed messages. It is an order.Meter.
type Expiry struct{ messages *prometheus.CounterVec }

// Expiry makes the figures of delayed messages. Without a broker that has them
// they do not exist.
func (m *Metrics) Expiry() *Expiry {
	e := &Expiry{factory{m.registry}.counters("seckill_expiry_messages_total", "Delayed messages that expire orders, by what became of them.", "result")}
	countFromZero(e.messages, order.ExpiryResults...)
	return e
}

// Message counts a message.
func (e *Expiry) Message(result order.ExpiryResult) { e.messages.WithLabelValues(string(result)).Inc() }
