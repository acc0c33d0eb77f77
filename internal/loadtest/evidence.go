package loadtest

import (
	"seckill/internal/api"
)

// Evidence is what was seen from outside, in figures: the judge needs nothing
// else, so that it can be judged itself with figures that are not true.
type Evidence struct {
	// Partial says why the test was cut short, "" when it was not.
	Partial string
	// Fresh says that nobody else buys this product.
	Fresh           bool
	Quantity, Limit int64

	// Buyers by how their asking ended.
	Won, Refused, GaveUp, NeverAsked int64
	SoldOutAnswers                   int64
	// NoToken of those who gave up or never asked had no living purchase token,
	// and why the last of them had none.
	NoToken    int64
	NoTokenWhy string
	// FoundUnits were bought by those who gave up: busy means unknown.
	FoundUnits   int64
	FoundUnknown int64 // buyers who gave up and could not be looked up
	// ForeignUnits were bought by others; ForeignUnread says that there may be
	// more.
	ForeignUnits  int64
	ForeignUnread bool

	// Figures before the crowd, when the queue was empty after it, and at the
	// end; nil where they could not be had.
	Before, Drained, Final *api.Stats
	// Drains says that the queue became empty.
	Drains bool

	Orders   Orders
	Holdings Holdings
	Repeats  Repeats
	Cancels  Moves
	Money    Money

	Reconciled      *api.Report
	ReconcileFailed string
}

// Orders are the promised orders as their buyers read them at the end.
type Orders struct {
	Promised int64 // all 202s
	Read     int64 // of which so many were looked up
	Unread   int64 // and so many could not be had
	ByStatus map[string]int64
	// Lost are promises that their buyers cannot read, or that failed without
	// a reason, or still wait although the queue is empty.
	Lost    int64
	Example string
}

// Holdings are the buyers' own lists of orders.
type Holdings struct {
	Read, Unread int64
	MostUnits    int64 // live units of the buyer with the most
	Over         int64 // buyers above the limit
	Missing      int64 // promised orders that the list does not show
	Example      string
}

// Repeats are requests that winners sent again under the same key.
type Repeats struct {
	Same, Other, Unknown int64
	Example              string
	// NoToken could not be sent again: a purchase token lives for a while only.
	NoToken    int64
	NoTokenWhy string
}

// Moves are orders that were moved on purpose.
type Moves struct {
	Asked   int64
	Kept    int64 // are where they were moved to
	Lost    int64 // were answered 2xx and are elsewhere
	Unknown int64
	Example string
}

// Money is what became of the payments.
type Money struct {
	Moves
	Late          int64 // came after the order had expired, and are to be refunded
	Read          int64 // orders whose money was looked up
	Unread        int64
	CountedTwice  int64 // orders with other than one payment, or other refunds than they should have
	CancelRefused int64 // attempts to cancel a paid order that were refused
	Cancelled     int64 // and that were not
}
