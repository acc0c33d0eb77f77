package store

import (
	"context"
	"time"

	"seckill"
)

// Letters keeps claims that could not be confirmed yet. A parked letter is retried with growing
// delays. A dead letter waits for an operator.
type Letters interface {
	// LettersDue lists at most limit parked letters that are due, without those of the excepted
	// products.
	LettersDue(ctx context.Context, limit int, except ...uint32) ([]Letter, error)
	// LetterFailed counts one more attempt. The letter is parked again for delay, or becomes
	// dead if delay is negative. A letter that is no longer parked is not changed.
	LetterFailed(ctx context.Context, id int64, reason string, delay time.Duration) error
	// CloseLetter removes a letter after its claim, of the given epoch, was adopted. If the
	// letter has another epoch by now, the claim was parked again since, and only the letter
	// still knows it: then nothing is removed.
	CloseLetter(ctx context.Context, id int64, epoch uint64) error
	Letters(ctx context.Context, filter LetterFilter) ([]Letter, error)
	// LetterByOrder finds the letter of an order (not_found).
	LetterByOrder(ctx context.Context, no seckill.OrderNo) (Letter, error)
	// RetryLetter makes a letter due now, and its attempts start anew. DiscardLetter writes a
	// failed order ("discarded"), owes the release if the ledger is the seller, and closes the
	// letter. An order that exists stays as it is.
	RetryLetter(ctx context.Context, id int64, actor Actor) (Letter, error)
	DiscardLetter(ctx context.Context, id int64, actor Actor) (seckill.Order, error)
	// DiscardDead discards at most limit dead letters older than age. Like Expire, it passes
	// over a letter that cannot be discarded.
	DiscardDead(ctx context.Context, age time.Duration, limit int) (int, error)
}

// Letter is a claim that waits for a retry or, if it is dead, for an operator.
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
