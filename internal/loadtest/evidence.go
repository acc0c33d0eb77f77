package loadtest

import (
	"seckill/internal/api"
)

// Evidence is all observations from outside, as figures. The judge reads nothing
// else, so that tests can feed it false figures.
type Evidence struct {
	// Partial says why the test was cut short, "" if it was not.
	Partial string
	// Fresh: the test made this product, so nobody else should buy it.
	Fresh           bool
	Quantity, Limit int64

	// Buyers by the outcome of their requests.
	Won, Refused, GaveUp, NeverAsked int64
	SoldOutAnswers                   int64
	// NoToken counts the buyers who gave up or never asked because they had no
	// valid purchase token. NoTokenWhy is the reason of the last one.
	NoToken    int64
	NoTokenWhy string
	// FoundUnits belong to buyers who gave up: busy means unknown.
	FoundUnits   int64
	FoundUnknown int64 // buyers who gave up and whose orders could not be read
	// ForeignUnits were bought by others. ForeignUnread: there may be more.
	ForeignUnits  int64
	ForeignUnread bool

	// Stats before the crowd, when the queue was empty after it, and at the end;
	// nil if they could not be read.
	Before, Drained, Final *api.Stats
	// Drains: the queue became empty.
	Drains bool

	Orders   Orders
	Holdings Holdings
	Repeats  Repeats
	Cancels  Moves
	Money    Money

	Reconciled      *api.Report
	ReconcileFailed string
}

// Orders counts the promised orders, as their buyers read them at the end.
type Orders struct {
	Promised int64 // all 202s
	Read     int64 // orders that were looked up
	Unread   int64 // orders that could not be read
	ByStatus map[string]int64
	// Lost counts orders that their buyers cannot read, that failed without a
	// reason, or that still wait although the queue is empty.
	Lost    int64
	Example string
}

// Holdings counts the buyers' own lists of orders.
type Holdings struct {
	Read, Unread int64
	MostUnits    int64 // live units of the buyer with most units
	Over         int64 // buyers above the limit
	Missing      int64 // promised orders that are not in the list
	Example      string
}

// Repeats counts requests that winners sent again with the same key.
type Repeats struct {
	Same, Other, Unknown int64
	Example              string
	// NoToken counts repeats that could not be sent, because the purchase token had expired.
	NoToken    int64
	NoTokenWhy string
}

// Moves counts orders that the test paid or cancelled.
type Moves struct {
	Asked   int64
	Kept    int64 // have the expected state
	Lost    int64 // were answered 2xx and have another state
	Unknown int64
	Example string
}

// Money counts the payments and what happened to them.
type Money struct {
	Moves
	Late          int64 // came after the order had expired, so they must be refunded
	Read          int64 // orders whose payments were read
	Unread        int64
	CountedTwice  int64 // orders without exactly one payment, or with wrong refunds
	CancelRefused int64 // refused attempts to cancel a paid order
	Cancelled     int64 // attempts that were not refused
}
