package background

import (
	"context"
	"slices"
)

const (
	// exceptMost bounds what a list is asked to leave out. Beyond it the round
	// ends: so much trouble is not one part's.
	exceptMost = 500
	// retryAtOnce is how much of the shelf is tried together. What it is owed may
	// fill a page each, and one page waits for the other.
	retryAtOnce = 4
)

// Work is what a duty owes to parts of the ledger, listed oldest first, a page
// at a time.
type Work[K comparable, T any] struct {
	// Shelf outlives the rounds.
	Shelf *Shelf[K]
	// Due lists at most Limit, without what is excepted: what cannot be done
	// would hide what is behind it.
	Due   func(ctx context.Context, limit int, except ...K) ([]T, error)
	Limit int
	// Key says whose it is.
	Key func(*T) K
	// Do does what one page lists of one key; several at once.
	Do     func(ctx context.Context, key K, items []T) error
	AtOnce int
	// All says that what was done is listed no more, so that a full page is
	// followed by the next. Without it a round is one page and what was behind
	// the parts in trouble.
	All bool

	failed []K // in this round
	errs   []error
}

// Round does what is due: first what is not on the shelf, then, a few at a
// time, what is, until a few of them did not answer. It goes on past trouble,
// and returns all errors.
func (w Work[K, T]) Round(ctx context.Context) error {
	shelf := w.Shelf.all()
	if len(shelf) > exceptMost {
		for _, key := range shelf[:len(shelf)-exceptMost] {
			w.Shelf.take(key)
		}
		shelf = shelf[len(shelf)-exceptMost:]
	}
	left := w.pass(ctx, shelf)
	for len(shelf) > 0 && left != unknown && ctx.Err() == nil && len(w.failed) < exceptMost {
		batch := shelf[:min(retryAtOnce, len(shelf))]
		shelf = shelf[len(batch):]
		left = w.pass(ctx, shelf)
		if left == nothing {
			w.settled(batch)
		}
		if !slices.ContainsFunc(batch, func(key K) bool { return !slices.Contains(w.failed, key) }) {
			break
		}
	}
	return joined(w.errs)
}

// settled takes those off the shelf that nothing is owed to.
func (w *Work[K, T]) settled(batch []K) {
	for _, key := range batch {
		if !slices.Contains(w.failed, key) {
			w.Shelf.take(key)
		}
	}
}

// rest is what a pass leaves behind of what it was to do.
type rest uint8

const (
	nothing rest = iota // but what has failed
	more                // there was more than a page
	unknown             // it could not be listed
)

// pass does page after page, without what is excepted or has failed in this
// round.
func (w *Work[K, T]) pass(ctx context.Context, except []K) rest {
	for {
		due, err := w.Due(ctx, w.Limit, slices.Concat(except, w.failed)...)
		if err != nil {
			w.errs = append(w.errs, err)
			return unknown
		}
		failed := w.page(ctx, due)
		switch {
		case len(due) < w.Limit:
			return nothing
		case !(w.All || failed), len(w.failed) >= exceptMost, ctx.Err() != nil:
			return more
		}
	}
}

// page does what one page lists, and reports whether something failed.
func (w *Work[K, T]) page(ctx context.Context, due []T) (failed bool) {
	var keys []K
	items := make(map[K][]T)
	for i := range due {
		key := w.Key(&due[i])
		if items[key] == nil {
			keys = append(keys, key)
		}
		items[key] = append(items[key], due[i])
	}
	errs := w.Shelf.run(ctx, keys, w.AtOnce, func(ctx context.Context, key K) error { return w.Do(ctx, key, items[key]) })
	for i, err := range errs {
		if err != nil {
			w.failed, failed = append(w.failed, keys[i]), true
		}
	}
	w.errs = append(w.errs, errs...)
	return failed
}
