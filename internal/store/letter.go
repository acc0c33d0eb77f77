package store

import (
	"context"
	"time"

	"seckill"
)

// Letters keeps claims that could not be confirmed yet: parked ones climb the
// ladder, dead ones wait for the operator.
type Letters interface {
	// LettersDue lists at most limit parked letters whose time has come, without
	// those of the excepted products.
	LettersDue(ctx context.Context, limit int, except ...uint32) ([]Letter, error)
	// LetterFailed counts one more attempt: parked again for delay, or dead if
	// delay is negative. Nothing happens if the letter is no longer parked.
	LetterFailed(ctx context.Context, id int64, reason string, delay time.Duration) error
	// CloseLetter removes a letter whose claim, of that epoch, was adopted.
	// Nothing happens if the letter is of another by now: the claim was parked
	// again since, and the letter is all that is left of it.
	CloseLetter(ctx context.Context, id int64, epoch uint64) error
	Letters(ctx context.Context, filter LetterFilter) ([]Letter, error)
	// LetterByOrder finds the letter of an order (not_found).
	LetterByOrder(ctx context.Context, no seckill.OrderNo) (Letter, error)
	// RetryLetter makes a letter due now with a fresh ladder; DiscardLetter makes
	// the order failed ("discarded"), owes the release if the ledger is the seller,
	// and closes the letter. An order that exists stays as it is.
	RetryLetter(ctx context.Context, id int64, actor Actor) (Letter, error)
	DiscardLetter(ctx context.Context, id int64, actor Actor) (seckill.Order, error)
	// DiscardDead discards at most limit dead letters older than age. It holds up
	// no other with one that cannot be discarded, as Expire does.
	DiscardDead(ctx context.Context, age time.Duration, limit int) (int, error)
}

// Letter is a claim on the ladder.
type Letter struct {
	ID        int64
	Item      Item
	Dead      bool
	Attempts  int
	Reason    string
	NextAt    time.Time
	CreatedAt time.Time
	DeadAt    time.Time // zero while parked
}

// LetterFilter narrows Letters; zero fields do not narrow.
type LetterFilter struct {
	ProductID uint32
	Buyer     string
	DeadOnly  bool
	After     int64 // page: only ids above this one
	Limit     int
}
