package background

import (
	"context"
	"slices"
)

const (
	// maxExcept bounds the keys that a list leaves out. Above it the round
	// ends: so many failures have a common cause.
	maxExcept = 500
	// retryAtOnce is how many postponed keys are tried together. Each may fill
	// a page, and the pages come one after the other.
	retryAtOnce = 4
)

// Work is a round over items of many keys, such as shards, listed oldest first
// in pages.
type Work[K comparable, T any] struct {
	// Postponed keeps the keys that did not answer between rounds.
	Postponed *Postponed[K]
	// Due lists at most Limit items, without those of except. Otherwise items
	// that cannot be done would hide the items behind them.
	Due   func(ctx context.Context, limit int, except ...K) ([]T, error)
	Limit int
	// Key returns the key of an item.
	Key func(*T) K
	// Do handles the items of one key on a page. Calls are concurrent.
	Do     func(ctx context.Context, key K, items []T) error
	AtOnce int
	// All means that finished items are no longer listed, so a full page is
	// followed by the next. Otherwise a round is one page and the items behind
	// the failed keys.
	All bool

	failed []K // in this round
	errs   []error
}

// Round handles the due items: first those of keys that are not postponed. Then
// it tries postponed keys, a few at a time, until all of a batch did not
// answer. It continues after errors, and returns all of them.
func (w Work[K, T]) Round(ctx context.Context) error {
	postponed := w.Postponed.all()
	if len(postponed) > maxExcept {
		for _, key := range postponed[:len(postponed)-maxExcept] {
			w.Postponed.take(key)
		}
		postponed = postponed[len(postponed)-maxExcept:]
	}
	left := w.pass(ctx, postponed)
	for len(postponed) > 0 && left != unknown && ctx.Err() == nil && len(w.failed) < maxExcept {
		batch := postponed[:min(retryAtOnce, len(postponed))]
		postponed = postponed[len(batch):]
		left = w.pass(ctx, postponed)
		if left == nothing {
			w.settled(batch)
		}
		if !slices.ContainsFunc(batch, func(key K) bool { return !slices.Contains(w.failed, key) }) {
			break
		}
	}
	return joined(w.errs)
}

// settled removes the keys without due items from the postponed ones.
func (w *Work[K, T]) settled(batch []K) {
	for _, key := range batch {
		if !slices.Contains(w.failed, key) {
			w.Postponed.take(key)
		}
	}
}

// rest says what a pass has left to do.
type rest uint8

const (
	nothing rest = iota // only failed items
	more                // there was more than a page
	unknown             // the list failed
)

// pass handles page after page, without the keys of except and those that
// failed in this round.
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
		case !(w.All || failed), len(w.failed) >= maxExcept, ctx.Err() != nil:
			return more
		}
	}
}

// page handles the items of one page, and reports whether one failed.
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
	errs := w.Postponed.run(ctx, keys, w.AtOnce, func(ctx context.Context, key K) error { return w.Do(ctx, key, items[key]) })
	for i, err := range errs {
		if err != nil {
			w.failed, failed = append(w.failed, keys[i]), true
		}
	}
	w.errs = append(w.errs, errs...)
	return failed
}
