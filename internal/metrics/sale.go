package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/internal/api"
)

const (
	// scrapeDeadline bounds what a scrape may cost the store and the ledger.
	scrapeDeadline = 2 * time.Second
	// maxScrapes bounds concurrent scrapes, since each reads the store and the
	// ledger. Further scrapes get 503.
	maxScrapes = 4
	// scrapeProducts bounds the series of one scrape.
	scrapeProducts = 200
)

func productLabel(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// SaleReader reads the figures of sales.
type SaleReader interface {
	// ShownSales lists the sales worth showing; Stats reads one.
	ShownSales() []uint32
	Stats(ctx context.Context, id uint32) (api.Stats, error)
	// TakenOver reports whether the store has taken a sale over, or is about to.
	TakenOver(id uint32) bool
	// InstructionsWaiting counts the products whose instruction the store may not
	// have.
	InstructionsWaiting() int
}

// StepCounter counts corrections of the ledger clock.
type StepCounter interface{ Steps() int64 }

// Sales are figures that are read when Prometheus asks: stock, reservations,
// orders by state, what waits in the queue.
type Sales struct {
	Sales SaleReader
	Clock StepCounter
	// Journal is the size of the embedded journal; nil without one.
	Journal func() (rows, bytes int64)
}

var (
	descUnits = prometheus.NewDesc("seckill_units", "Units of a product, by place.", []string{"product", "where"}, nil)
	descDepth = prometheus.NewDesc("seckill_queue_depth", "Reservations that wait for the worker, with parked claims and dead letters.", []string{"product"}, nil)
	descAge   = prometheus.NewDesc("seckill_queue_oldest_seconds", "Age of the oldest reservation that waits for the worker.", []string{"product"}, nil)
	descEpoch = prometheus.NewDesc("seckill_epoch", "Epoch of the product in the ledger. It rises with each rebuild.", []string{"product"}, nil)
	descTaken = prometheus.NewDesc("seckill_taken_over", "1 if the store sells the product in place of the ledger, or is about to, else 0.", []string{"product"}, nil)
	descRows  = prometheus.NewDesc("seckill_journal_rows", "Rows in the embedded ledger's journal.", nil, nil)
	descBytes = prometheus.NewDesc("seckill_journal_bytes", "Size of the embedded ledger's journal, with its write-ahead log.", nil, nil)
	descTold  = prometheus.NewDesc("seckill_instructions_waiting", "Products that an operator paused or ended while the store was away, if the store may not know it yet.", nil, nil)
	descSteps = prometheus.NewDesc("seckill_clock_steps_total", "Corrections of the ledger clock by more than a second.", nil, nil)
)

// Describe names the metrics.
func (s *Sales) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUnits, descDepth, descAge, descEpoch, descTaken, descTold, descSteps, descRows, descBytes} {
		to <- d
	}
}

// shown are the sales of one scrape.
func (s *Sales) shown() []uint32 {
	ids := s.Sales.ShownSales()
	return ids[max(0, len(ids)-scrapeProducts):] // the newest have the highest ids, as a rule
}

// Collect reads the metrics. A sale that cannot be read is left out: a gap in the
// chart is right, a zero would be wrong.
func (s *Sales) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeDeadline)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	to <- prometheus.MustNewConstMetric(descSteps, prometheus.CounterValue, float64(s.Clock.Steps()))
	to <- prometheus.MustNewConstMetric(descTold, prometheus.GaugeValue, float64(s.Sales.InstructionsWaiting()))
	if s.Journal != nil {
		rows, bytes := s.Journal()
		gauge(descRows, float64(rows))
		gauge(descBytes, float64(bytes))
	}
	for _, id := range s.shown() {
		product := productLabel(id)
		gauge(descTaken, oneIf(s.Sales.TakenOver(id)), product) // known without the store and the ledger
		st, err := s.Sales.Stats(ctx, id)
		if err != nil {
			continue
		}
		for where, units := range map[string]int64{
			"offered": st.Offered, "ledger_available": st.Ledger.Available, "ledger_reserved": st.Ledger.Reserved,
			"stock": st.Store.Stock, "pending": st.Store.Pending, "paid": st.Store.Paid,
			"cancelled": st.Store.Cancelled, "failed": st.Store.Failed, "refunded": st.Store.Refunded,
		} {
			gauge(descUnits, float64(units), product, where)
		}
		gauge(descDepth, float64(st.Queue.Depth), product)
		gauge(descAge, float64(st.Queue.OldestMS)/1000, product)
		gauge(descEpoch, float64(st.Epoch), product)
	}
}
