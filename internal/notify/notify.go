// Package notify is the port by which instances tell each other about changes.
// Notices only save time: every fact is also in the store or the ledger, where
// each instance looks within a second. So a notice may be lost, late, repeated
// or out of order without harm.
//
//   - notify.go: notices and the Board; page.go: their encoding
//   - draft.go: notices that wait to be sent; fence.go: waiting until earlier notices were received
package notify

import (
	"context"
	"time"
)

// Kind is the subject of a notice. Kinds of newer versions are ignored.
type Kind string

// The kinds.
const (
	// ProductChanged: terms, state or epoch of the product in the store have
	// changed.
	ProductChanged Kind = "product"
	// SoldOut: at the time At, the ledger had no free unit.
	SoldOut Kind = "sold_out"
	// UnitsBack: the product has free units again.
	UnitsBack Kind = "units"
	// BuyersAccepted: the ledger has accepted these buyers of the group. The
	// ledger itself publishes it, never Post.
	BuyersAccepted Kind = "accepted"
	// Fenced: one place of the ledger has sent a barrier, so everything that
	// this place published before was received. Never posted; see Fence.
	Fenced Kind = "fence"
	// DutyDue: the named background loop has something to do.
	DutyDue Kind = "duty"
)

// Notice is one message to the other instances.
type Notice struct {
	Kind    Kind
	Product uint32
	Group   uint32
	Duty    string
	At      time.Time // by the clock of the ledger, which all instances use
	Buyers  []uint64  // hashes of the accepted buyers
	Barrier uint64    // the barrier of a fence
}

// Board carries notices between instances.
type Board interface {
	// Post sends the notice to the others soon. It costs no more than a map
	// access, and drops the notice if the board is full.
	Post(n Notice)
	// Run sends and receives notices until ctx ends, and reconnects by itself.
	// It calls hear for each notice of others, one at a time. It calls joined
	// whenever it begins to listen (earlier notices were missed), and parted
	// whenever it loses the connection. None of them may block. hear must not
	// keep the notice's buyers, because their memory is reused.
	Run(ctx context.Context, hear func(Notice), joined, parted func())
	// Stats counts the notices of this instance.
	Stats() Stats
}

// Stats count notices of this instance.
type Stats struct {
	Posted  int64 // sent to the others
	Heard   int64 // received from the others
	Dropped int64 // not sent: no room, or no connection
}

// NoBoard is the board of an instance without others.
type NoBoard struct{}

// Post drops the notice.
func (NoBoard) Post(Notice) {}

// Run waits for the end of ctx.
func (NoBoard) Run(ctx context.Context, _ func(Notice), _, _ func()) { <-ctx.Done() }

// Stats returns zeros.
func (NoBoard) Stats() Stats { return Stats{} }
