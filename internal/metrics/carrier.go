package metrics

import "github.com/prometheus/client_golang/prometheus"

// Carrier has the metrics of the broker that transports reservations. It implements relay.Meter.
type Carrier struct {
	messages *prometheus.CounterVec
	claims   *prometheus.CounterVec
	strays   prometheus.Counter
	held     prometheus.Gauge
	bypassed prometheus.Gauge
}

// Values of the label "result" of messages.
const (
	carrierPublished = "published"
	carrierAgain     = "published_again"
)

// Carrier registers the metrics of a carrier. Without a carrier they do not exist.
func (m *Metrics) Carrier() *Carrier {
	f := factory{m.registry}
	c := &Carrier{
		messages: f.counters("seckill_carrier_messages_total", "Messages of the broker, by result: published, published_again, or rejected without being read: forged, foreign, poison.", "result"),
		claims:   f.counters("seckill_carrier_claims_total", "Claims in published messages.", "result"),
		strays:   f.counter("seckill_carrier_strays_total", "Messages whose entry was no longer in the outbox."),
		held:     f.gauge("seckill_carrier_held_claims", "Claims that the relay of this instance has published and no worker has acknowledged yet."),
		bypassed: f.gauge("seckill_carrier_bypassed", "1 while workers of this instance read the outbox directly because the broker does not work, else 0."),
	}
	for _, result := range []string{carrierPublished, carrierAgain, "forged", "foreign", "poison"} {
		c.messages.WithLabelValues(result) // so that increase() sees the first event
	}
	return c
}

// Published counts messages and claims that the broker has stored.
func (c *Carrier) Published(messages, claims int, again bool) {
	result := carrierPublished
	if again {
		result = carrierAgain
	}
	c.messages.WithLabelValues(result).Add(float64(messages))
	c.claims.WithLabelValues(result).Add(float64(claims))
}

// Rejected counts a message that was acknowledged without being read.
func (c *Carrier) Rejected(why string) { c.messages.WithLabelValues(why).Inc() }

// Stray counts messages whose entry was no longer in the outbox.
func (c *Carrier) Stray(entries int) { c.strays.Add(float64(entries)) }

// Holds sets the claims that are published and not acknowledged.
func (c *Carrier) Holds(claims int) { c.held.Set(float64(claims)) }

// Bypassed sets whether workers read the outbox directly.
func (c *Carrier) Bypassed(cause error) { c.bypassed.Set(oneIf(cause != nil)) }
