package store

import (
	"context"
	"time"

	"seckill"
)

// Reconciliations reads what a cut compares, and keeps the reports.
type Reconciliations interface {
	// Tally reads what operators watch in one snapshot. It reads no order, however
	// many there are: every move of an order keeps the sums.
	Tally(ctx context.Context, id uint32) (Tally, error)
	// Figures reads the product's figures in one snapshot. It counts the orders.
	Figures(ctx context.Context, id uint32) (Figures, error)
	// CheckStockLog walks the product's stock log (I6) and says what is wrong, at
	// most limit findings.
	CheckStockLog(ctx context.Context, id uint32, limit int) ([]Finding, error)
	// CheckBuyers compares the group's buyer records with its live orders (I3).
	CheckBuyers(ctx context.Context, group uint32, limit int) ([]Finding, error)
	// CheckMoney compares the product's orders with its payments, and those with
	// their refunds (I8). A refund that needs care is a finding too.
	CheckMoney(ctx context.Context, id uint32, limit int) ([]Finding, error)
	// CheckTally compares the sums of Tally with the product's orders.
	CheckTally(ctx context.Context, id uint32) ([]Finding, error)
	// RepairTally sets the sums to what the orders say, and returns how many were
	// wrong. It writes the audit.
	RepairTally(ctx context.Context, id uint32, actor Actor) (int, error)
	// RepairBuyers sets at most limit buyer records of the group to what its
	// live orders say: the one safe direction. It returns how many, and writes
	// the audit.
	RepairBuyers(ctx context.Context, group uint32, limit int, actor Actor) (int, error)
	// RetryRefunds retries at most limit refunds of the product that need care, as
	// RetryRefund does, and returns how many.
	RetryRefunds(ctx context.Context, product uint32, limit int, actor Actor) (int, error)

	SaveReconciliation(ctx context.Context, report Reconciliation) (Reconciliation, error)
	// Reconciliations lists newest first, below an id unless that is 0; product 0
	// means all.
	Reconciliations(ctx context.Context, product uint32, before int64, limit int) ([]Reconciliation, error)
	// UncountedEnds lists at most limit products that were preheated and whose
	// end was announced, and of which no report was kept since; the earliest end
	// first.
	UncountedEnds(ctx context.Context, limit int) ([]uint32, error)
}

// Tally is what operators watch of a product: units of its orders by status, and
// claims on the ladder.
type Tally struct {
	Product seckill.Product
	Counted seckill.Counted
	// Letters are claims on the ladder, of any epoch.
	Letters      int64
	OldestLetter time.Time
}

// Figures are a product's numbers in the store at one instant. Units unless
// said otherwise.
type Figures struct {
	Product   seckill.Product
	Pending   int64
	Paid      int64
	Cancelled int64
	Failed    int64
	Refunded  int64
	// Shards counts, for the present epoch, what the ledger should hold.
	Shards []ShardFigures
	// Letters are claims on the ladder, of any epoch.
	Letters, LetterUnits int64
	OldestLetter         time.Time
	// OpenChanges counts stock changes that are not done; ReleasesDue counts
	// owed releases.
	OpenChanges, ReleasesDue int64
	// Changes counts all stock changes ever recorded: it tells two readings
	// with a change between them apart, also where units came and went.
	Changes int64
}

// ShardFigures are units of rows of the present epoch on one shard: orders of
// that epoch (live ones of older epochs were restamped) and letters of it.
// Orders that the store sold itself are not among them; only one whose number
// the ledger turned out to have sold too counts, as dead.
type ShardFigures struct {
	Index     int
	Rows      int64 // all of them
	Dead      int64 // dead ones
	HeardDead int64 // dead ones whose release was heard
}

// Finding is one thing that does not hold.
type Finding struct {
	Expected string
	Found    string
	Detail   string
}

// Reconciliation is a report that is kept. Body is its JSON.
type Reconciliation struct {
	ID        int64
	ProductID uint32
	At        time.Time
	Balanced  *bool // nil: could not tell
	Body      []byte
}

// Feed reads what happened.
type Feed interface {
	// Events lists events with ids above after, in order, without ever skipping
	// one that commits later. Those of test products are among them, and say so.
	// Data is nil for events of an order, for events from
	// before version 8 of the tables, and where the column holds no JSON.
	Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error)
	// Audit lists newest first; AppendAudit adds what no other method writes.
	Audit(ctx context.Context, filter AuditFilter) ([]AuditLine, error)
	AppendAudit(ctx context.Context, line AuditLine) error
}

// AuditLine is who did what, when and why.
type AuditLine struct {
	ID        int64
	At        time.Time
	Actor     string
	Action    string // such as "product.pause", "order.refund"
	ProductID uint32
	OrderNo   string
	Reason    string
	Detail    string // what changed, as text
}

// AuditFilter narrows Audit; zero fields do not narrow.
type AuditFilter struct {
	ProductID uint32
	OrderNo   string
	Before    int64 // page: only ids below this one
	Limit     int
}

// Leases let a duty run once in the cluster, and keep a second ledger off a store
// that was set up wrongly. Duties only save work by them: no promise rests on a
// lease.
type Leases interface {
	// AcquireLease takes or renews a lease until ttl from now, and reports
	// whether holder has it. All who want it name the same ttl: a lease that ends
	// more than twice that from now was given before the clock was set back, and
	// does not stand.
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	ReleaseLease(ctx context.Context, name, holder string) error
}
