package alert

// Kind is what happened, in words that stay the same: rules, dashboards and the
// operators' guide go by them.
type Kind struct {
	Label string // in the metric
	Text  string // in the log and at the webhook
}

// MarshalText writes the kind for log and webhook.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.Text), nil }

// The kinds.
var (
	Violations   = Kind{"reconcile_violations", "reconciliation found violations"}
	MustRecover  = Kind{"ledger_must_recover", "ledger must be recovered"}
	NotRecovered = Kind{"ledger_not_recovered", "a ledger could not be recovered"}
	StoreOlder   = Kind{"store_older_than_journal", "the store is older than its journal"}
	NoProduct    = Kind{"unknown_product", "the store does not know a product"}
	TooManyWait  = Kind{"too_many_entries_wait", "too many entries wait for a recovery"}
	Disagree     = Kind{"store_ledger_disagree", "store and ledger disagree"}
	NotKept      = Kind{"promises_not_kept", "promised orders could not be kept"}
	NoTriesLeft  = Kind{"claim_no_tries_left", "a claim has no tries left"}
	ParkedFailed = Kind{"parked_claim_failed", "a parked claim has failed"}
	RefundFailed = Kind{"refund_needs_care", "a refund needs care"}
	Conflict     = Kind{"payment_conflict", "payment conflict"}
	MayEvict     = Kind{"redis_may_evict", "Redis may evict keys"}
	RebuiltAgain = Kind{"ledger_rebuilt_again", "a ledger is rebuilt again and again"}
	WorkerEnded  = Kind{"worker_stopped", "worker stopped"}
	BrokerUnwell = Kind{"broker_unwell", "the broker is unwell"}
	Rejected     = Kind{"messages_rejected", "messages of the broker were rejected"}
	SinkFailed   = Kind{"sink_delivery_failed", "a delivery to a sink has failed"}
	SinkRefuses  = Kind{"sink_refuses", "a sink refuses many events"}
	SinkLags     = Kind{"sink_lags", "a sink lags behind"}
	JournalFails = Kind{"journal_fails", "promises cannot be written to the journal"}
	TakenOver    = Kind{"store_took_over", "the store has taken sales over"}
)

// Kinds lists all of them. Each is counted from 0: a series that begins with its
// first event shows no increase, and the first is the one to hear of.
var Kinds = []Kind{
	Violations, MustRecover, NotRecovered, StoreOlder, NoProduct, TooManyWait, Disagree, NotKept,
	NoTriesLeft, ParkedFailed, RefundFailed, Conflict, MayEvict, RebuiltAgain, WorkerEnded, BrokerUnwell, Rejected,
	SinkFailed, SinkRefuses, SinkLags, JournalFails, TakenOver,
}
