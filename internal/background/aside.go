// A Shelf keeps the rounds of background duties going past what does not answer. A part of the ledger that is away (one master of a Cluster) must not
// hold up what lies elsewhere: what was asked in vain is put on a shelf, and is
// tried after everything else from then on, few at a time, until it answers.

package background

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

var (
	// ErrNoAnswer says that something was not done within its own bound, while
	// the round had time left.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrLater says that something is to be passed over for the rest of the
	// round, which is no failure of the duty.
	ErrLater = errors.New("to be done in another round")
)

// Within runs do for at most bound. If that is why it failed, or a shorter
// bound within, the error is ErrNoAnswer.
func Within(ctx context.Context, bound time.Duration, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := do(within)
	if late := within.Err() != nil || errors.Is(err, context.DeadlineExceeded); err != nil && late && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// Shelf is what did not answer a duty, by product, or by shard where one can be
// told from another. The zero value is empty.
type Shelf[K comparable] struct {
	mu   sync.Mutex
	keys []K // longest there first
}

// put lays a key behind all others.
func (s *Shelf[K]) put(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(slices.DeleteFunc(s.keys, func(k K) bool { return k == key }), key)
}

func (s *Shelf[K]) take(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k K) bool { return k == key })
}

// all are the keys, longest there first.
func (s *Shelf[K]) all() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// done moves a key by how the try at it ended.
func (s *Shelf[K]) done(key K, err error) {
	if errors.Is(err, ErrNoAnswer) {
		s.put(key)
	} else {
		s.take(key)
	}
}

// Each runs do for every key, some at once: for those that are not on the shelf,
// one list after the other, then for those that are. Of these it tries as many
// as run at once, and more only after one that answered: however many do not,
// they cost a round one bound. It goes on past errors, and returns all of them.
func (s *Shelf[K]) Each(ctx context.Context, atOnce int, do func(ctx context.Context, key K) error, lists ...[]K) error {
	shelf := s.keep(slices.Concat(lists...))
	var errs []error
	for _, list := range lists {
		fresh := slices.DeleteFunc(slices.Clone(list), func(k K) bool { return slices.Contains(shelf, k) })
		errs = append(errs, s.run(ctx, fresh, atOnce, do)...)
	}
	for len(shelf) > 0 && ctx.Err() == nil {
		batch := shelf[:min(atOnce, len(shelf))]
		shelf = shelf[len(batch):]
		tried := s.run(ctx, batch, atOnce, do)
		errs = append(errs, tried...)
		if silent(tried) == len(batch) {
			break
		}
	}
	return joined(errs)
}

// keep drops what is not among keys, which nobody looks after any more, and
// returns the others, longest there first.
func (s *Shelf[K]) keep(keys []K) []K {
	wanted := make(map[K]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k K) bool { return !wanted[k] })
	return slices.Clone(s.keys)
}

// run runs do for each key, some at once, and returns how each ended. What the
// round's end left no time for ends with the round's error.
func (s *Shelf[K]) run(ctx context.Context, keys []K, atOnce int, do func(ctx context.Context, key K) error) []error {
	errs := make([]error, len(keys))
	places := make(chan struct{}, atOnce)
	var working sync.WaitGroup
	for i, key := range keys {
		places <- struct{}{}
		if err := ctx.Err(); err != nil {
			errs[i] = fmt.Errorf("%d not reached in this round: %w", len(keys)-i, err)
			break
		}
		working.Go(func() {
			defer func() { <-places }()
			errs[i] = do(ctx, key)
			s.done(key, errs[i])
		})
	}
	working.Wait()
	return errs
}

func silent(errs []error) (count int) {
	for _, err := range errs {
		if errors.Is(err, ErrNoAnswer) {
			count++
		}
	}
	return count
}

// joined are the errors that a duty has to show.
func joined(errs []error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrLater) })...)
}
