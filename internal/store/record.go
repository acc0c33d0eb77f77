package store

import (
	"context"
	"time"

	"seckill"
)

// Reconciliations reads the figures that a reconciliation compares, and keeps the reports.
type Reconciliations interface {
	// Tally reads the figures for operators in one snapshot. It reads no orders: every move of
	// an order updates the sums.
	Tally(ctx context.Context, id uint32) (Tally, error)
	// Figures counts the product's orders and reads its other figures in one snapshot.
	Figures(ctx context.Context, id uint32) (Figures, error)
	// CheckStockLog walks the product's stock log (I6), and returns at most limit findings.
	CheckStockLog(ctx context.Context, id uint32, limit int) ([]Finding, error)
	// CheckBuyers compares the group's buyer records with its live orders (I3).
	CheckBuyers(ctx context.Context, group uint32, limit int) ([]Finding, error)
	// CheckMoney compares the product's orders with its payments, and the payments with their
	// refunds (I8). A refund that needs care is a finding too.
	CheckMoney(ctx context.Context, id uint32, limit int) ([]Finding, error)
	// CheckTally compares the sums of Tally with the product's orders.
	CheckTally(ctx context.Context, id uint32) ([]Finding, error)
	// RepairTally sets the sums to the product's orders, and returns how many sums were wrong.
	// It writes the audit.
	RepairTally(ctx context.Context, id uint32, actor Actor) (int, error)
	// RepairBuyers sets at most limit buyer records of the group to their live orders, and
	// returns how many. Orders are the record, so only this direction is safe. It writes the
	// audit.
	RepairBuyers(ctx context.Context, group uint32, limit int, actor Actor) (int, error)
	// RetryRefunds calls RetryRefund for at most limit refunds of the product that need care,
	// and returns how many.
	RetryRefunds(ctx context.Context, product uint32, limit int, actor Actor) (int, error)

	SaveReconciliation(ctx context.Context, report Reconciliation) (Reconciliation, error)
	// Reconciliations lists reports, newest first, with ids below before unless that is 0.
	// Product 0 means all.
	Reconciliations(ctx context.Context, product uint32, before int64, limit int) ([]Reconciliation, error)
	// UncountedEnds lists at most limit products that were preheated, whose end was announced,
	// and that have no report since. The earliest end comes first.
	UncountedEnds(ctx context.Context, limit int) ([]uint32, error)
}

// Tally has the figures of a product for operators: units of its orders by status, and letters.
type Tally struct {
	Product seckill.Product
	Counted seckill.Counted
	// Letters counts letters of any epoch.
	Letters      int64
	OldestLetter time.Time
}

// Figures are a product's numbers in the store at one instant, in units unless a field says
// otherwise.
type Figures struct {
	Product   seckill.Product
	Pending   int64
	Paid      int64
	Cancelled int64
	Failed    int64
	Refunded  int64
	// Shards counts what the ledger should hold in the present epoch.
	Shards []ShardFigures
	// Letters counts letters of any epoch.
	Letters, LetterUnits int64
	OldestLetter         time.Time
	// OpenChanges counts stock changes that are not done. ReleasesDue counts owed releases.
	OpenChanges, ReleasesDue int64
	// Changes counts all stock changes ever recorded. Two readings differ in it if there was a
	// change between them, even if the same number of units came and went.
	Changes int64
}

// ShardFigures count units of rows of the present epoch on one shard: letters and orders of
// that epoch. Live orders of older epochs were restamped, so they count. Orders that the store
// sold itself do not count, unless the ledger sold the same number too: such an order counts as
// dead.
type ShardFigures struct {
	Index       int
	Rows        int64 // all rows
	Dead        int64 // dead orders
	SettledDead int64 // dead orders whose release was settled
}

// Finding is one difference that a check has found.
type Finding struct {
	Expected string
	Found    string
	Detail   string
}

// Reconciliation is a stored report. Body is its JSON.
type Reconciliation struct {
	ID        int64
	ProductID uint32
	At        time.Time
	Balanced  *bool // nil: could not be decided
	Body      []byte
}

// Feed reads events and the audit.
type Feed interface {
	// Events lists events with ids above after, in order. It never skips an event that commits
	// later. Events of test products are included, and named as such. Data is nil for events
	// of an order, for events from before version 8 of the tables, and where the column holds
	// no JSON.
	Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error)
	// Audit lists newest first. AppendAudit adds lines that no other method writes.
	Audit(ctx context.Context, filter AuditFilter) ([]AuditLine, error)
	AppendAudit(ctx context.Context, line AuditLine) error
}

// AuditLine records an operator change: its actor, time and reason.
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

// Leases let one instance at a time run a background duty, and keep a second ledger away from a
// store after a wrong setup. No promise rests on a lease: for duties it only saves work.
type Leases interface {
	// AcquireLease takes or renews a lease until ttl from now, and reports whether holder has
	// it. All holders must give the same ttl. A lease that ends more than twice the ttl from
	// now was given before the clock was set back, and does not count.
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	ReleaseLease(ctx context.Context, name, holder string) error
}
