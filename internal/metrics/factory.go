package metrics

import "github.com/prometheus/client_golang/prometheus"

// factory makes a metric and registers it in one step.
type factory struct{ reg *prometheus.Registry }

func add[C prometheus.Collector](f factory, c C) C {
	f.reg.MustRegister(c)
	return c
}

func (f factory) counter(name, help string) prometheus.Counter {
	return add(f, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return add(f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// countFromZero makes the series of a label whose values are known. A series that
// begins with its first event begins at 1, and increase() and rate() miss that
// first event. Alert rules need it.
func countFromZero[V ~string](c *prometheus.CounterVec, values ...V) {
	for _, value := range values {
		c.WithLabelValues(string(value))
	}
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return add(f, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

// oneIf is the value of a gauge for true and false.
func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// readGauge makes a gauge that is read at each scrape.
func (m *Metrics) readGauge(name, help string, read func() float64) {
	m.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// readCounter makes a counter that is read at each scrape.
func (m *Metrics) readCounter(name, help string, read func() float64) {
	m.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return add(f, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return add(f, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}
