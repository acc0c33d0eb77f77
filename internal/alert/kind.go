package alert

// Kind is what happened, in words that stay the same: rules, dashboards and the
// operators' guide go by them.
type Kind string

// The kinds.
const (
	Violations   Kind = "reconciliation found violations"
	MustRecover  Kind = "ledger must be recovered"
	NotRecovered Kind = "a ledger could not be recovered"
	StoreOlder   Kind = "the store is older than its journal"
	NoProduct    Kind = "the store does not know a product"
	TooManyWait  Kind = "too many entries wait for a recovery"
	Disagree     Kind = "store and ledger disagree"
	NotKept      Kind = "promised orders could not be kept"
	NoTriesLeft  Kind = "a claim has no tries left"
	ParkedFailed Kind = "a parked claim has failed"
	RefundFailed Kind = "a refund needs care"
	Conflict     Kind = "payment conflict"
	MayEvict     Kind = "Redis may evict keys"
	OtherStore   Kind = "the ledger belongs to another store"
	RebuiltAgain Kind = "a ledger is rebuilt again and again"
	WorkerEnded  Kind = "worker stopped"
	BrokerUnwell Kind = "the broker is unwell"
	Rejected     Kind = "messages of the broker were rejected"
	SinkFailed   Kind = "a delivery to a sink has failed"
	SinkRefuses  Kind = "a sink refuses many events"
	SinkLags     Kind = "a sink lags behind"
	JournalFails Kind = "promises cannot be written to the journal"
	TakenOver    Kind = "the store has taken sales over"
)

// Kinds lists all of them. Each is counted from 0: a series that begins with its
// first event shows no increase, and the first is the one to hear of.
var Kinds = []Kind{
	Violations, MustRecover, NotRecovered, StoreOlder, NoProduct, TooManyWait, Disagree, NotKept,
	NoTriesLeft, ParkedFailed, RefundFailed, Conflict, MayEvict, OtherStore, RebuiltAgain, WorkerEnded, BrokerUnwell, Rejected,
	SinkFailed, SinkRefuses, SinkLags, JournalFails, TakenOver,
}
