package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/notify"
)

// Outbox is the state of the ledger's streams.
type Outbox struct {
	Length    int64 // entries, acknowledged ones that are not trimmed included
	Waiting   int64 // entries that are not acknowledged
	Foreign   int64 // of these, which wait for a worker that reads their version
	Oldest    time.Duration
	Consumers int
	Relays    int
}

// Parts are figures of what an instance stands on, read when Prometheus asks.
type Parts struct {
	// Ledger and Store report whether they can be used.
	Ledger, Store func(ctx context.Context) error
	// Outbox reads the streams; nil without them.
	Outbox   func(ctx context.Context) (Outbox, error)
	Bulletin func() notify.Stats
	// Silent counts shards whose breaker is open.
	Silent func() int
}

var (
	descUp        = prometheus.NewDesc("seckill_up", "Whether a part can be used: 1 or 0.", []string{"part"}, nil)
	descLength    = prometheus.NewDesc("seckill_outbox_length", "Entries in the outbox streams, those included that wait to be trimmed.", nil, nil)
	descWaiting   = prometheus.NewDesc("seckill_outbox_waiting", "Outbox entries that are not acknowledged.", nil, nil)
	descForeign   = prometheus.NewDesc("seckill_outbox_foreign", "Outbox entries of a format version that this instance does not read.", nil, nil)
	descOldest    = prometheus.NewDesc("seckill_outbox_oldest_seconds", "Age of the oldest outbox entry that is not acknowledged.", nil, nil)
	descConsumers = prometheus.NewDesc("seckill_outbox_consumers", "Workers that are alive, of all instances.", nil, nil)
	descRelays    = prometheus.NewDesc("seckill_outbox_relays", "Relays to a broker that are alive, of all instances.", nil, nil)
	descSilent    = prometheus.NewDesc("seckill_ledger_silent_shards", "Shards that do not answer: their breaker is open and claims are refused at once.", nil, nil)
	descNotices   = prometheus.NewDesc("seckill_bulletin_notices_total", "Notices between instances, by what became of them here.", []string{"result"}, nil)
)

// Describe names the figures.
func (p *Parts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descLength, descWaiting, descForeign, descOldest, descConsumers, descRelays, descSilent, descNotices} {
		to <- d
	}
}

// Collect reads the figures, all at once: a part that hangs must not hide the
// others.
func (p *Parts) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeDeadline)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	var reading sync.WaitGroup
	for part, ping := range map[string]func(context.Context) error{"ledger": p.Ledger, "store": p.Store} {
		reading.Go(func() {
			gauge(descUp, oneIf(ping(ctx) == nil), part)
		})
	}
	if p.Outbox != nil {
		reading.Go(func() {
			outbox, err := p.Outbox(ctx)
			if err != nil {
				return // a gap is honest, a zero is not
			}
			gauge(descLength, float64(outbox.Length))
			gauge(descWaiting, float64(outbox.Waiting))
			gauge(descForeign, float64(outbox.Foreign))
			gauge(descOldest, outbox.Oldest.Seconds())
			gauge(descConsumers, float64(outbox.Consumers))
			gauge(descRelays, float64(outbox.Relays))
		})
	}
	gauge(descSilent, float64(p.Silent()))
	stats := p.Bulletin()
	for result, count := range map[string]int64{"posted": stats.Posted, "heard": stats.Heard, "dropped": stats.Dropped} {
		to <- prometheus.MustNewConstMetric(descNotices, prometheus.CounterValue, float64(count), result)
	}
	reading.Wait()
}
