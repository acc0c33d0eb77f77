// A part of the ledger that is away, such as one master of a Cluster, must not
// delay the rounds of background loops for other parts. A part that did not
// answer is postponed: later rounds try it after all others, a few at a time,
// until it answers.

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
	// ErrNoAnswer says that a call did not finish within its own bound, while
	// the round had time left.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrLater says that an item is skipped for the rest of the round. This is
	// no failure of the round.
	ErrLater = errors.New("to be done in another round")
)

// Within runs do for at most bound. If do fails because of this bound, or of a
// shorter one inside, the error is ErrNoAnswer.
func Within(ctx context.Context, bound time.Duration, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := do(within)
	if late := within.Err() != nil || errors.Is(err, context.DeadlineExceeded); err != nil && late && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// Postponed holds the products or shards that did not answer. The zero value is
// empty.
type Postponed[K comparable] struct {
	mu   sync.Mutex
	keys []K // the longest postponed first
}

// put moves a key to the end.
func (s *Postponed[K]) put(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(slices.DeleteFunc(s.keys, func(k K) bool { return k == key }), key)
}

func (s *Postponed[K]) take(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k K) bool { return k == key })
}

// all returns the keys, the longest postponed first.
func (s *Postponed[K]) all() []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// done postpones a key, or removes it, by the result of a try.
func (s *Postponed[K]) done(key K, err error) {
	if errors.Is(err, ErrNoAnswer) {
		s.put(key)
	} else {
		s.take(key)
	}
}

// Each runs do for every key, several at a time. It first takes the keys that
// are not postponed, list by list. Then it tries as many postponed ones as run
// at a time, and more only if at least one of them answered. So any number of
// silent parts costs a round only one timeout. It continues after errors, and
// returns all of them.
func (s *Postponed[K]) Each(ctx context.Context, atOnce int, do func(ctx context.Context, key K) error, lists ...[]K) error {
	postponed := s.keep(slices.Concat(lists...))
	var errs []error
	for _, list := range lists {
		fresh := slices.DeleteFunc(slices.Clone(list), func(k K) bool { return slices.Contains(postponed, k) })
		errs = append(errs, s.run(ctx, fresh, atOnce, do)...)
	}
	for len(postponed) > 0 && ctx.Err() == nil {
		batch := postponed[:min(atOnce, len(postponed))]
		postponed = postponed[len(batch):]
		tried := s.run(ctx, batch, atOnce, do)
		errs = append(errs, tried...)
		if noAnswers(tried) == len(batch) {
			break
		}
	}
	return joined(errs)
}

// keep removes the keys that are not in keys, because nothing is due for them.
// It returns the others, the longest postponed first.
func (s *Postponed[K]) keep(keys []K) []K {
	wanted := make(map[K]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = slices.DeleteFunc(s.keys, func(k K) bool { return !wanted[k] })
	return slices.Clone(s.keys)
}

// run runs do for each key, several at a time, and returns the errors. If the
// round ends first, the remaining keys get its error.
func (s *Postponed[K]) run(ctx context.Context, keys []K, atOnce int, do func(ctx context.Context, key K) error) []error {
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

func noAnswers(errs []error) (count int) {
	for _, err := range errs {
		if errors.Is(err, ErrNoAnswer) {
			count++
		}
	}
	return count
}

// joined joins the errors that a round has to report.
func joined(errs []error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrLater) })...)
}
