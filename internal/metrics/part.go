package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/notify"
)

// Outbox is the state of the outbox streams in the ledger.
type Outbox struct {
	Length    int64 // all entries, also acknowledged ones that are not trimmed yet
	Waiting   int64 // entries that are not acknowledged
	Foreign   int64 // waiting entries of a version that this build cannot read
	Oldest    time.Duration
	Consumers int
	Relays    int
}

// Parts has the metrics of the servers that an instance depends on. They are read
// at each scrape.
type Parts struct {
	// Ledger and Store return an error if the part cannot be used.
	Ledger, Store func(ctx context.Context) error
	// Outbox reads the streams; nil without them.
	Outbox   func(ctx context.Context) (Outbox, error)
	Bulletin func() notify.Stats
	// Silent counts shards whose breaker is open.
	Silent func() int
}

var (
	descUp        = prometheus.NewDesc("seckill_up", "1 if the part can be used, else 0.", []string{"part"}, nil)
	descLength    = prometheus.NewDesc("seckill_outbox_length", "Entries in the outbox streams, with acknowledged ones that are not trimmed yet.", nil, nil)
	descWaiting   = prometheus.NewDesc("seckill_outbox_waiting", "Outbox entries that no worker has acknowledged.", nil, nil)
	descForeign   = prometheus.NewDesc("seckill_outbox_foreign", "Outbox entries of a format version that this instance cannot read.", nil, nil)
	descOldest    = prometheus.NewDesc("seckill_outbox_oldest_seconds", "Age of the oldest outbox entry that no worker has acknowledged.", nil, nil)
	descConsumers = prometheus.NewDesc("seckill_outbox_consumers", "Living workers of all instances.", nil, nil)
	descRelays    = prometheus.NewDesc("seckill_outbox_relays", "Living relays to a broker of all instances.", nil, nil)
	descSilent    = prometheus.NewDesc("seckill_ledger_silent_shards", "Shards whose circuit breaker is open because they do not answer. Their purchases are refused at once.", nil, nil)
	descNotices   = prometheus.NewDesc("seckill_bulletin_notices_total", "Messages between instances, by result at this instance.", []string{"result"}, nil)
)

// Describe names the metrics.
func (p *Parts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descLength, descWaiting, descForeign, descOldest, descConsumers, descRelays, descSilent, descNotices} {
		to <- d
	}
}

// Collect reads all metrics at the same time, so that a part that hangs does not
// hide the others.
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
				return // a gap in the chart is right, a zero would be wrong
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
