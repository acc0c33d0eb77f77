// Package notify is the port through which instances tell each other what
// has just changed. It carries promptness, never truth: whatever a notice says
// stands in the store or in the ledger too, where every instance looks by
// itself within a second. A notice may therefore be lost, late, doubled or out
// of order, and nothing is wrong but the moment.
package notify

import (
	"context"
	"time"
)

// Kind is what a notice is about. Instances of another version may post kinds
// that this one does not know; they are passed over.
type Kind string

// The kinds.
const (
	// ProductChanged: the product's terms, state or epoch in the store are new.
	ProductChanged Kind = "product"
	// SoldOut: the ledger was asked at At and had no unit free.
	SoldOut Kind = "sold_out"
	// UnitsBack: the product has free units again.
	UnitsBack Kind = "units"
	// BuyersAccepted: the ledger has accepted these buyers of the group. It says
	// so itself: nobody posts it.
	BuyersAccepted Kind = "accepted"
	// Fenced: what was published before the barrier was heard before it, from one of
	// the places where the ledger is. Nobody posts it; see Fence.
	Fenced Kind = "fence"
	// DutyDue: the named duty has something to do now.
	DutyDue Kind = "duty"
)

// Notice is one thing that an instance tells the others.
type Notice struct {
	Kind    Kind
	Product uint32
	Group   uint32
	Duty    string
	At      time.Time // by the ledger's clock, which all instances follow
	Buyers  []uint64  // hashes, of those accepted
	Barrier uint64    // of a fence
}

// Board carries notices between instances.
type Board interface {
	// Post tells the others, soon. It takes no longer than a map access, and
	// drops what a full board has no room for.
	Post(n Notice)
	// Run carries notices until ctx ends; it mends its connection by itself. It
	// calls hear for each notice of the others, one at a time, joined whenever it
	// begins to listen (notices of before that were missed), and parted whenever
	// it finds that it no longer can. None may block, and hear may not keep the
	// notice's buyers, which are read to the same place again.
	Run(ctx context.Context, hear func(Notice), joined, parted func())
	// Stats counts what became of notices.
	Stats() Stats
}

// Stats count notices of this instance.
type Stats struct {
	Posted  int64 // sent to the others
	Heard   int64 // of the others
	Dropped int64 // not sent: no room, or no connection
}

// Nobody is the board of an instance that is alone.
type Nobody struct{}

// Post drops the notice: there is nobody to tell.
func (Nobody) Post(Notice) {}

// Run waits for the end.
func (Nobody) Run(ctx context.Context, _ func(Notice), _, _ func()) { <-ctx.Done() }

// Stats are zero.
func (Nobody) Stats() Stats { return Stats{} }
