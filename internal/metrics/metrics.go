// Package metrics has the counters, gauges and histograms that Prometheus reads.
// Stages get them as plain methods, so that no stage imports Prometheus.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seckill"
	"seckill/internal/admission"
	"seckill/internal/alert"
	"seckill/internal/api"
	"seckill/internal/auth"
	"seckill/internal/challenge"
	"seckill/internal/purchase"
	"seckill/internal/recovery"
	"seckill/internal/store"
)

// Buckets of durations: from a memory access to a deadline.
var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Buckets of batch sizes, in items.
var sizes = prometheus.ExponentialBuckets(1, 2, 12)

// Values of the label "result" of challenges and of reconciliations.
const (
	answerRight = "right"
	answerWrong = "wrong"

	resultBalanced = "balanced"
	resultViolated = "violated"
	resultUnknown  = "unknown"
)

// Metrics are the metrics of one instance.
type Metrics struct {
	registry *prometheus.Registry

	// Accepted counts purchases that were answered with 202.
	Accepted prometheus.Counter

	refused  []prometheus.Counter // by seckill.Code.Index
	gates    map[admission.Gate]prometheus.Counter
	requests *prometheus.CounterVec

	ReserveClaims  prometheus.Histogram
	ReserveSeconds prometheus.Histogram
	SellClaims     prometheus.Histogram
	SellSeconds    prometheus.Histogram
	CommitRows     prometheus.Histogram
	CommitSeconds  prometheus.Histogram
	SyncSeconds    prometheus.Histogram
	WorkerClaims   prometheus.Histogram
	WorkerSeconds  prometheus.Histogram
	WorkerLag      prometheus.Gauge
	DutySeconds    *prometheus.HistogramVec
	DutyFailures   *prometheus.CounterVec
	Alerts         *prometheus.CounterVec
	Payments       *prometheus.CounterVec
	Expired        *prometheus.CounterVec
	Panics         prometheus.Counter
	DualWrites     *prometheus.CounterVec
	forgotten      prometheus.Counter
	reoffered      *prometheus.CounterVec
	ConnsRefused   *prometheus.CounterVec
	// OperatorRefused counts refused requests to the operator's port. The reasons
	// are adminapi.Suspicions.
	OperatorRefused *prometheus.CounterVec

	tooHot     map[purchase.TooHot]prometheus.Counter // kept by reason: a crowd makes many
	raised     prometheus.Counter
	spared     prometheus.Counter
	challenges *prometheus.CounterVec
	answers    *prometheus.CounterVec
	difficulty prometheus.Gauge

	reconciled *prometheus.CounterVec
	balanced   *prometheus.GaugeVec
	durable    *prometheus.GaugeVec
}

// New makes and registers all metrics.
func New(version string) *Metrics {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{reg}
	m := &Metrics{
		registry: reg,
		Accepted: f.counter("seckill_claims_accepted_total", "Purchases answered with 202 and an order number."),
		requests: f.counters("seckill_http_requests_total", "Requests answered, by route and status.", "route", "status"),
		gates:    map[admission.Gate]prometheus.Counter{},

		ReserveClaims:   f.histogram("seckill_reserve_batch_claims", "Claims in one atomic step of the ledger.", sizes),
		ReserveSeconds:  f.histogram("seckill_reserve_seconds", "Duration of one step of the ledger.", seconds),
		SellClaims:      f.histogram("seckill_sell_batch_claims", "Claims in one transaction of a direct sale (the store decides).", sizes),
		SellSeconds:     f.histogram("seckill_sell_seconds", "Duration of one transaction of a direct sale, with the wait for row locks.", seconds),
		CommitRows:      f.histogram("seckill_journal_commit_rows", "Rows in one commit of the embedded ledger's journal.", sizes),
		CommitSeconds:   f.histogram("seckill_journal_commit_seconds", "Duration of one commit of the embedded ledger's journal, with its fsync.", seconds),
		SyncSeconds:     f.histogram("seckill_promise_journal_sync_seconds", "Duration of one fsync of the journal of promises.", seconds),
		WorkerClaims:    f.histogram("seckill_worker_batch_claims", "Claims in one batch that a worker wrote to the store.", sizes),
		WorkerSeconds:   f.histogram("seckill_worker_seconds", "Duration of one worker batch.", seconds),
		WorkerLag:       f.gauge("seckill_worker_lag_seconds", "Age of the oldest reservation in the worker's last batch, when it was written."),
		DutySeconds:     f.histograms("seckill_duty_seconds", "Duration of one round of a background job.", seconds, "duty"),
		DutyFailures:    f.counters("seckill_duty_failures_total", "Failed rounds of a background job.", "duty"),
		Alerts:          f.counters("seckill_alerts_total", "Alerts raised, by kind.", "kind"),
		Payments:        f.counters("seckill_payments_total", "Verified payment callbacks, by result.", "result"),
		Expired:         f.counters("seckill_orders_expired_total", "Orders that expired unpaid, by trigger: a delayed message, or the scan of the store.", "by"),
		DualWrites:      f.counters("seckill_dualwrite_batches_total", "Batches of dualwrite products that were written to the store at once, by result.", "result"),
		forgotten:       f.counter("seckill_promises_forgotten_total", "Answered purchases that this instance forgot before they were in the store, because its memory for them was full."),
		reoffered:       f.counters("seckill_promises_reoffered_total", "Answered purchases that a rebuilt ledger had lost, by their outcome.", "result"),
		OperatorRefused: f.counters("seckill_operator_refused_total", "Requests to the operator's port without a valid token, by reason of the refusal.", "why"),
		ConnsRefused:    f.counters("seckill_connections_refused_total", "Connections to the shop that were refused, by the limit that was reached.", "bound"),
		Panics:          f.counter("seckill_http_panics_total", "Requests that ended in a panic."),
		raised:          f.counter("seckill_challenges_raised_total", "Proofs of work that were made harder because the address or the buyer had asked for many challenges."),
		spared:          f.counter("seckill_challenge_answers_spared_total", "Answers to challenges that this instance remembered by itself because Redis was away."),

		tooHot:     map[purchase.TooHot]prometheus.Counter{},
		challenges: f.counters("seckill_challenges_total", "Challenges sent to buyers, by kind.", "kind"),
		answers:    f.counters("seckill_challenge_answers_total", "Challenges answered, by kind and result.", "kind", "result"),
		difficulty: f.gauge("seckill_challenge_pow_difficulty", "Difficulty of the last proof of work that was sent."),

		reconciled: f.counters("seckill_reconciliations_total", "Reconciliations, by result.", "result"),
		balanced:   f.gauges("seckill_reconcile_balanced", "Result of the last reconciliation: 1 balanced, 0 not balanced, -1 unknown.", "product"),
		durable:    f.gauges("seckill_ledger_durable", "1 if, by its settings, Redis keeps everything that it has answered through this kind of fault of one machine, else 0.", "fault"),
	}
	refused := f.counters("seckill_claims_refused_total", "Purchases refused, by error code.", "code")
	for _, code := range seckill.Codes() {
		m.refused = append(m.refused, refused.WithLabelValues(string(code)))
	}
	gates := f.counters("seckill_gate_refused_total", "Purchases refused by an admission gate, by gate.", "gate")
	for _, gate := range admission.Gates {
		m.gates[gate] = gates.WithLabelValues(string(gate))
	}
	tooHot := f.counters("seckill_too_hot_total", "Purchases that the queue before the ledger refused, by reason.", "why")
	for _, why := range purchase.TooHots {
		m.tooHot[why] = tooHot.WithLabelValues(string(why))
	}
	m.countFromZero()
	f.gauges("seckill_build_info", "The running version.", "version").WithLabelValues(version).Set(1)
	return m
}

// countFromZero makes every series whose labels are known beforehand.
func (m *Metrics) countFromZero() {
	for _, kind := range alert.Kinds {
		m.Alerts.WithLabelValues(kind.Label)
	}
	countFromZero(m.Expired, ExpiredByMessage, ExpiredByScan)
	countFromZero(m.reoffered, recovery.Results...)
	countFromZero(m.DualWrites, purchase.DualWriteResults...)
	countFromZero(m.ConnsRefused, api.Refusals...)
	countFromZero(m.reconciled, resultUnknown, resultViolated, resultBalanced)
	countFromZero(m.challenges, challenge.Kinds...)
	for _, kind := range challenge.Kinds {
		for _, result := range []string{answerRight, answerWrong} {
			m.answers.WithLabelValues(string(kind), result)
		}
	}
	for _, result := range store.PaymentResults {
		countFromZero(m.Payments, result.String())
	}
}

// ExpectDuty makes the series of a job that this instance runs.
func (m *Metrics) ExpectDuty(name string) { countFromZero(m.DutyFailures, name) }

// Posed counts a challenge that was sent.
func (m *Metrics) Posed(kind challenge.Kind, difficulty int) {
	m.challenges.WithLabelValues(string(kind)).Inc()
	if kind == challenge.Pow {
		m.difficulty.Set(float64(difficulty))
	}
}

// Forgotten counts promises that were dropped for want of room.
func (m *Metrics) Forgotten(promises int) { m.forgotten.Add(float64(promises)) }

// Reoffered counts promises that a lost ledger did not take along.
func (m *Metrics) Reoffered(result recovery.Result, promises int) {
	m.reoffered.WithLabelValues(string(result)).Add(float64(promises))
}

// Raised counts a proof of work that was made harder because of the buyer's or address' reputation.
func (m *Metrics) Raised() { m.raised.Inc() }

// Spared counts an answer that this instance remembered because Redis was away.
func (m *Metrics) Spared() { m.spared.Inc() }

// Answered counts an answer that was checked.
func (m *Metrics) Answered(kind challenge.Kind, right bool) {
	result := answerWrong
	if right {
		result = answerRight
	}
	m.answers.WithLabelValues(string(kind), result).Inc()
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// Register adds a collector, for example one that reads its values at each scrape.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Refused counts one refused purchase, by its error code and the gate.
func (m *Metrics) Refused(code seckill.Code, gate admission.Gate) {
	if i := code.Index(); i >= 0 {
		m.refused[i].Inc()
	}
	if c := m.gates[gate]; c != nil {
		c.Inc()
	}
}

// Route returns the counter of a route and status. Callers keep it: the lookup is slow.
func (m *Metrics) Route(route, status string) prometheus.Counter {
	return m.requests.WithLabelValues(route, status)
}

// TooHot counts a purchase that the queue before the ledger refused.
func (m *Metrics) TooHot(why purchase.TooHot) { m.tooHot[why].Inc() }

// DualWrite counts a batch of a dualwrite product.
func (m *Metrics) DualWrite(result purchase.DualWriteResult) {
	m.DualWrites.WithLabelValues(string(result)).Inc()
}

// Conns registers the number of connections to the shop.
func (m *Metrics) Conns(count func() int) {
	m.readGauge("seckill_connections", "Connections to the shop, event streams included.", func() float64 { return float64(count()) })
}

// Unread registers the bytes of answers that slow clients have not read yet.
func (m *Metrics) Unread(bytes func() int) {
	m.readGauge("seckill_unread_bytes", "Bytes of large answers that slow clients have not read yet.", func() float64 { return float64(bytes()) })
}

// Streams registers the number of open event streams.
func (m *Metrics) Streams(count func() int) {
	m.readGauge("seckill_event_streams", "Open event streams of orders.", func() float64 { return float64(count()) })
}

// Remembered registers the number of answers that are not in the store yet.
func (m *Metrics) Remembered(count func() int64) {
	m.readGauge("seckill_promises_remembered", "Answered purchases that this instance remembers because it has not seen their orders in the store yet.", func() float64 { return float64(count()) })
}

// PromiseJournal registers the size of the journal of promises and its failed writes.
func (m *Metrics) PromiseJournal(read func() (bytes, failures int64)) {
	m.readGauge("seckill_promise_journal_bytes", "Size of the journal of promises.", func() float64 { bytes, _ := read(); return float64(bytes) })
	m.readCounter("seckill_promise_journal_failures_total", "Failed writes to the journal of promises. Each makes the purchases of its batch busy.", func() float64 { _, failures := read(); return float64(failures) })
}

// Keys registers figures of the public keys that verify buyers' tokens.
func (m *Metrics) Keys(read func() auth.KeysStats) {
	m.readGauge("seckill_jwks_keys", "Public keys in use for verifying buyers' tokens.", func() float64 { return float64(read().Keys) })
	m.readGauge("seckill_jwks_age_seconds", "Time since the public keys in use were fetched; before the first fetch, time since the start.", func() float64 { return read().Age.Seconds() })
	m.readCounter("seckill_jwks_signatures_total", "Signatures verified with a public key. A token that was verified before is remembered and not counted.", func() float64 { return float64(read().Signatures) })
}

// Shops registers the number of living shop instances, which share the rate limits.
func (m *Metrics) Shops(live func() int64) {
	m.readGauge("seckill_shops_live", "Living instances with the shop role, with this one. Each allows its share of the rate limits.", func() float64 { return float64(live()) })
}

// Commit records one commit of the embedded ledger's journal.
func (m *Metrics) Commit(rows int, took time.Duration) {
	m.CommitRows.Observe(float64(rows))
	m.CommitSeconds.Observe(took.Seconds())
}

// JournalSync records one fsync of the journal of promises.
func (m *Metrics) JournalSync(took time.Duration) { m.SyncSeconds.Observe(took.Seconds()) }

// Worker records one batch of a worker.
func (m *Metrics) Worker(claims int, lag, took time.Duration) {
	m.WorkerClaims.Observe(float64(claims))
	m.WorkerSeconds.Observe(took.Seconds())
	m.WorkerLag.Set(lag.Seconds())
}

// Duty records one round of a background job.
func (m *Metrics) Duty(name string, took time.Duration, err error) {
	m.DutySeconds.WithLabelValues(name).Observe(took.Seconds())
	if err != nil {
		m.DutyFailures.WithLabelValues(name).Inc()
	}
}

// Durable sets whether the ledger keeps its answers through a kind of fault.
func (m *Metrics) Durable(fault string, yes bool) {
	m.durable.WithLabelValues(fault).Set(oneIf(yes))
}

// Reconciled records one report. Reports of test products are not counted.
func (m *Metrics) Reconciled(report api.Report) {
	if report.Test {
		return
	}
	result, value := resultUnknown, -1.0
	if report.Balanced != nil {
		if result, value = resultViolated, 0; *report.Balanced {
			result, value = resultBalanced, 1
		}
	}
	m.reconciled.WithLabelValues(result).Inc()
	m.balanced.WithLabelValues(productLabel(report.ProductID)).Set(value)
}
