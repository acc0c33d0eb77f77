// Package metrics is what Prometheus reads: counters and histograms of every
// stage, made once and handed to the stages as plain functions, so that no
// stage knows Prometheus.
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

// Values of the label "result": how a challenge was answered, and how a
// reconciliation ended.
const (
	answerRight = "right"
	answerWrong = "wrong"

	resultBalanced = "balanced"
	resultViolated = "violated"
	resultUnknown  = "unknown"
)

// Metrics are the instance's figures.
type Metrics struct {
	registry *prometheus.Registry

	accepted prometheus.Counter
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
	// RaisedPrices counts proofs of work that the asker's reputation made harder.
	RaisedPrices prometheus.Counter
	// SparedAnswers counts answers to challenges that the spare register settled.
	SparedAnswers prometheus.Counter
	DualWrites    *prometheus.CounterVec
	Forgotten     prometheus.Counter
	Reoffered     *prometheus.CounterVec
	ConnsRefused  *prometheus.CounterVec
	// OperatorRefused counts requests to the operator's port by why they are
	// suspect, as adminapi.Suspicions has it.
	OperatorRefused *prometheus.CounterVec

	tooHot     map[purchase.TooHot]prometheus.Counter // a crowd brings many
	challenges *prometheus.CounterVec
	answers    *prometheus.CounterVec
	difficulty prometheus.Gauge

	reconciled *prometheus.CounterVec
	balanced   *prometheus.GaugeVec
	durable    *prometheus.GaugeVec
}

// New makes the figures.
func New(version string) *Metrics {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{reg}
	m := &Metrics{
		registry: reg,
		accepted: f.counter("seckill_claims_accepted_total", "Claims answered 202."),
		requests: f.counters("seckill_http_requests_total", "Requests answered, by route and status.", "route", "status"),
		gates:    map[admission.Gate]prometheus.Counter{},

		ReserveClaims:   f.histogram("seckill_reserve_batch_claims", "Claims in one atomic ledger step.", sizes),
		ReserveSeconds:  f.histogram("seckill_reserve_seconds", "Duration of one ledger step.", seconds),
		SellClaims:      f.histogram("seckill_sell_batch_claims", "Claims in one transaction in which the store sells itself.", sizes),
		SellSeconds:     f.histogram("seckill_sell_seconds", "Duration of one such transaction, waiting for others included.", seconds),
		CommitRows:      f.histogram("seckill_journal_commit_rows", "Journal rows in one commit.", sizes),
		CommitSeconds:   f.histogram("seckill_journal_commit_seconds", "Duration of one journal commit, fsync included.", seconds),
		SyncSeconds:     f.histogram("seckill_promise_journal_sync_seconds", "Duration of one sync of the journal of promises.", seconds),
		WorkerClaims:    f.histogram("seckill_worker_batch_claims", "Claims in one settled worker batch.", sizes),
		WorkerSeconds:   f.histogram("seckill_worker_seconds", "Duration of one worker batch.", seconds),
		WorkerLag:       f.gauge("seckill_worker_lag_seconds", "Age of the oldest reservation in the last settled batch."),
		DutySeconds:     f.histograms("seckill_duty_seconds", "Duration of one round of a background duty.", seconds, "duty"),
		DutyFailures:    f.counters("seckill_duty_failures_total", "Rounds of a background duty that failed.", "duty"),
		Alerts:          f.counters("seckill_alerts_total", "Alerts raised, by kind.", "kind"),
		Payments:        f.counters("seckill_payments_total", "Authentic payment notices, by what they did.", "result"),
		Expired:         f.counters("seckill_orders_expired_total", "Orders that were not paid in time, by what expired them: a delayed message, or the scan of the store.", "by"),
		DualWrites:      f.counters("seckill_dualwrite_batches_total", "Immediate store attempts of dualwrite products, by result.", "result"),
		Forgotten:       f.counter("seckill_promises_forgotten_total", "Unconfirmed answers dropped from this instance's memory for want of room."),
		Reoffered:       f.counters("seckill_promises_reoffered_total", "Unconfirmed answers that a rebuilt ledger did not have, by what became of them.", "result"),
		OperatorRefused: f.counters("seckill_operator_refused_total", "Requests to the operator's port that were refused before they had shown the right token, by reason.", "why"),
		ConnsRefused:    f.counters("seckill_connections_refused_total", "Connections to the shop that were one too many, by which bound.", "bound"),
		Panics:          f.counter("seckill_http_panics_total", "Requests that ended in a panic."),
		RaisedPrices:    f.counter("seckill_challenges_raised_total", "Proofs of work that were harder because the address or the buyer had asked for many challenges."),
		SparedAnswers:   f.counter("seckill_challenge_answers_spared_total", "Answers to challenges that this instance remembers, as Redis could not be asked."),

		tooHot:     map[purchase.TooHot]prometheus.Counter{},
		challenges: f.counters("seckill_challenges_total", "Challenges asked, by kind.", "kind"),
		answers:    f.counters("seckill_challenge_answers_total", "Challenges answered, by kind and result.", "kind", "result"),
		difficulty: f.gauge("seckill_challenge_pow_difficulty", "Difficulty of the last proof of work that was asked."),

		reconciled: f.counters("seckill_reconciliations_total", "Reconciliations, by result.", "result"),
		balanced:   f.gauges("seckill_reconcile_balanced", "Last reconciliation: 1 balanced, 0 not, -1 could not tell.", "product"),
		durable:    f.gauges("seckill_ledger_durable", "Whether what Redis has answered outlives a fault of one machine, by its settings: 1 or 0.", "fault"),
	}
	refused := f.counters("seckill_claims_refused_total", "Claims refused, by code.", "code")
	for _, code := range seckill.Codes() {
		m.refused = append(m.refused, refused.WithLabelValues(string(code)))
	}
	gates := f.counters("seckill_gate_refused_total", "Claims turned away, by admission gate.", "gate")
	for _, gate := range admission.Gates {
		m.gates[gate] = gates.WithLabelValues(string(gate))
	}
	tooHot := f.counters("seckill_too_hot_total", "Claims that the line before the ledger did not take, by why.", "why")
	for _, why := range purchase.TooHots {
		m.tooHot[why] = tooHot.WithLabelValues(string(why))
	}
	m.countFromZero()
	f.gauges("seckill_build_info", "The running version.", "version").WithLabelValues(version).Set(1)
	return m
}

// countFromZero makes every series that can be named beforehand.
func (m *Metrics) countFromZero() {
	for _, kind := range alert.Kinds {
		m.Alerts.WithLabelValues(kind.Label)
	}
	countFromZero(m.Expired, ExpiredByMessage, ExpiredByScan)
	countFromZero(m.Reoffered, recovery.Results...)
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

// ExpectDuty makes the series of a duty that the instance has.
func (m *Metrics) ExpectDuty(name string) { countFromZero(m.DutyFailures, name) }

// Posed counts a challenge that was asked.
func (m *Metrics) Posed(kind challenge.Kind, difficulty int) {
	m.challenges.WithLabelValues(string(kind)).Inc()
	if kind == challenge.Pow {
		m.difficulty.Set(float64(difficulty))
	}
}

// Answered counts an answer that was judged.
func (m *Metrics) Answered(kind challenge.Kind, right bool) {
	result := answerWrong
	if right {
		result = answerRight
	}
	m.answers.WithLabelValues(string(kind), result).Inc()
}

// Handler serves the figures.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// Register adds a collector, such as figures that are read when asked for.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Claim counts one answered claim; an empty code is an accepted one.
func (m *Metrics) Claim(code seckill.Code, gate admission.Gate) {
	if code == "" {
		m.accepted.Inc()
		return
	}
	if i := code.Index(); i >= 0 {
		m.refused[i].Inc()
	}
	if c := m.gates[gate]; c != nil {
		c.Inc()
	}
}

// Route is the counter of a route's answers with a status; hold on to it.
func (m *Metrics) Route(route, status string) prometheus.Counter {
	return m.requests.WithLabelValues(route, status)
}

// TooHot counts a claim that the line before the ledger did not take.
func (m *Metrics) TooHot(why purchase.TooHot) { m.tooHot[why].Inc() }

// Reserve sees one ledger step.
func (m *Metrics) Reserve(claims int, took time.Duration) {
	m.ReserveClaims.Observe(float64(claims))
	m.ReserveSeconds.Observe(took.Seconds())
}

// Conns shows how many connections the shop has.
func (m *Metrics) Conns(count func() int) {
	m.readGauge("seckill_connections", "Connections to the shop, event streams included.", func() float64 { return float64(count()) })
}

// Unread shows how many bytes of answers wait for their readers.
func (m *Metrics) Unread(bytes func() int) {
	m.readGauge("seckill_unread_bytes", "Bytes of large answers to shoppers that are not written yet.", func() float64 { return float64(bytes()) })
}

// Streams shows how many event streams the shop has.
func (m *Metrics) Streams(count func() int) {
	m.readGauge("seckill_event_streams", "Event streams of orders that are open.", func() float64 { return float64(count()) })
}

// Remembered shows how many unconfirmed answers the instance remembers.
func (m *Metrics) Remembered(count func() int64) {
	m.readGauge("seckill_promises_remembered", "Answers whose orders this instance has not seen in the store yet.", func() float64 { return float64(count()) })
}

// PromiseJournal shows how much the journal of promises holds, and how often it
// could not be written.
func (m *Metrics) PromiseJournal(read func() (bytes, failures int64)) {
	m.readGauge("seckill_promise_journal_bytes", "Bytes that the journal of promises holds.", func() float64 { bytes, _ := read(); return float64(bytes) })
	m.readCounter("seckill_promise_journal_failures_total", "Writes to the journal of promises that failed; while they do, purchases are busy.", func() float64 { _, failures := read(); return float64(failures) })
}

// Keys shows the set of public keys that buyers' tokens are verified with.
func (m *Metrics) Keys(read func() auth.KeysStats) {
	m.readGauge("seckill_jwks_keys", "Public keys that buyers' tokens are verified with.", func() float64 { return float64(read().Keys) })
	m.readGauge("seckill_jwks_age_seconds", "Time since the set of keys in force was fetched; before the first, since the start.", func() float64 { return read().Age.Seconds() })
	m.readCounter("seckill_jwks_signatures_total", "Signatures checked with a public key; a token that is remembered needs none.", func() float64 { return float64(read().Signatures) })
}

// Shops shows how many instances divide the rate limits among them.
func (m *Metrics) Shops(live func() int64) {
	m.readGauge("seckill_shops_live", "Instances with the shop's role that are alive, this one included: each allows its share of the rate limits.", func() float64 { return float64(live()) })
}

// Sell sees one transaction of the store's counter.
func (m *Metrics) Sell(claims int, took time.Duration) {
	m.SellClaims.Observe(float64(claims))
	m.SellSeconds.Observe(took.Seconds())
}

// Commit sees one journal commit.
func (m *Metrics) Commit(rows int, took time.Duration) {
	m.CommitRows.Observe(float64(rows))
	m.CommitSeconds.Observe(took.Seconds())
}

// JournalSync sees one sync of the journal of promises.
func (m *Metrics) JournalSync(took time.Duration) { m.SyncSeconds.Observe(took.Seconds()) }

// Worker sees one settled worker batch.
func (m *Metrics) Worker(claims int, lag, took time.Duration) {
	m.WorkerClaims.Observe(float64(claims))
	m.WorkerSeconds.Observe(took.Seconds())
	m.WorkerLag.Set(lag.Seconds())
}

// Duty sees one round of a background duty.
func (m *Metrics) Duty(name string, took time.Duration, err error) {
	m.DutySeconds.WithLabelValues(name).Observe(took.Seconds())
	if err != nil {
		m.DutyFailures.WithLabelValues(name).Inc()
	}
}

// Durable says whether the ledger's answers outlive a kind of fault.
func (m *Metrics) Durable(fault string, yes bool) {
	m.durable.WithLabelValues(fault).Set(oneIf(yes))
}

// Reconciled sees one report. Those of test products are nobody's figures.
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
