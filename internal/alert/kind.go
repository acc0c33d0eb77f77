package alert

// Kind is a kind of alert. Its texts never change, because alert rules,
// dashboards and the runbook use them.
type Kind struct {
	Label string // label of the metric
	Text  string // text in the log and the webhook
}

// MarshalText encodes the kind for log and webhook.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.Text), nil }

// Kinds lists all kinds. Each is counted from 0: otherwise a metric would show
// no increase for its first alert.
var Kinds []Kind

func kind(label, text string) Kind {
	Kinds = append(Kinds, Kind{label, text})
	return Kind{label, text}
}

// The kinds.
var (
	Violations   = kind("reconcile_violations", "reconciliation found violations")
	MustRecover  = kind("ledger_must_recover", "ledger must be recovered")
	NotRecovered = kind("ledger_not_recovered", "a ledger could not be recovered")
	StoreOlder   = kind("store_older_than_journal", "the store is older than its journal")
	NoProduct    = kind("unknown_product", "the store does not know a product")
	TooManyWait  = kind("too_many_entries_wait", "too many entries wait for a recovery")
	Disagree     = kind("store_ledger_disagree", "store and ledger disagree")
	NotKept      = kind("promises_not_kept", "promised orders could not be kept")
	NoTriesLeft  = kind("claim_no_tries_left", "a claim has no tries left")
	ParkedFailed = kind("parked_claim_failed", "a parked claim has failed")
	RefundFailed = kind("refund_needs_care", "a refund needs care")
	Conflict     = kind("payment_conflict", "payment conflict")
	MayEvict     = kind("redis_may_evict", "Redis may evict keys")
	RebuiltAgain = kind("ledger_rebuilt_again", "a ledger is rebuilt again and again")
	BrokerUnwell = kind("broker_unwell", "the broker is unwell")
	Rejected     = kind("messages_rejected", "messages of the broker were rejected")
	SinkFailed   = kind("sink_delivery_failed", "a delivery to a sink has failed")
	SinkRefuses  = kind("sink_refuses", "a sink refuses many events")
	SinkLags     = kind("sink_lags", "a sink lags behind")
	JournalFails = kind("journal_fails", "promises cannot be written to the journal")
	TakenOver    = kind("store_took_over", "the store has taken sales over")
)
