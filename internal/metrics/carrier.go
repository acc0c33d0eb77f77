package metrics

import "github.com/prometheus/client_golang/prometheus"

// Carrier are the figures of the broker that carries reservations. It is a
// relay.Meter.
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

// Carrier makes the figures of a carrier. Without one they do not exist.
func (m *Metrics) Carrier() *Carrier {
	f := factory{m.registry}
	c := &Carrier{
		messages: f.counters("seckill_carrier_messages_total", "Messages at the broker: published for the first time, published again, or settled unread as forged, foreign or poison.", "result"),
		claims:   f.counters("seckill_carrier_claims_total", "Claims in messages that were published.", "result"),
		strays:   f.counter("seckill_carrier_strays_total", "Copies of entries that no longer waited in the outbox."),
		held:     f.gauge("seckill_carrier_held_claims", "Claims that the relay of this instance has published and that nobody has acknowledged."),
		bypassed: f.gauge("seckill_carrier_bypassed", "Whether workers of this instance read the outbox, as the broker is unwell: 1 or 0."),
	}
	for _, result := range []string{carrierPublished, carrierAgain, "forged", "foreign", "poison"} {
		c.messages.WithLabelValues(result) // a rule sees it grow from 0
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

// Rejected counts a message that was settled unread.
func (c *Carrier) Rejected(why string) { c.messages.WithLabelValues(why).Inc() }

// Stray counts copies whose entries did not wait.
func (c *Carrier) Stray(entries int) { c.strays.Add(float64(entries)) }

// Holds tells what the relay holds.
func (c *Carrier) Holds(claims int) { c.held.Set(float64(claims)) }

// Bypassed tells whether workers read the outbox.
func (c *Carrier) Bypassed(cause error) { c.bypassed.Set(oneIf(cause != nil)) }
