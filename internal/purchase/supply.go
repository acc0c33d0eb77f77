package purchase

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"seckill/internal/ledger/transfer"
	"seckill/internal/sale"
)

const (
	// supplyPatience is how long after its arrival a claim waits for units from
	// other shards; with it every answer comes within a second.
	supplyPatience = 800 * time.Millisecond
	// lookTimeout bounds one look at all shards.
	lookTimeout = 500 * time.Millisecond
	// proofLife is how old a proof of no free unit may be when it is used (I7).
	proofLife = time.Second
	// firstLookPause and maxLookPause bound the growing pause between looks that
	// brought nothing: what is in transit arrives within milliseconds.
	firstLookPause = time.Millisecond
	maxLookPause   = 50 * time.Millisecond
)

// supply is for one shard of several: claims that found the shard empty wait here
// while units are brought from the other shards, and are then decided again. Only a proof
// over all of them, and the shard's word after it, is an answer of no.
type supply struct {
	batcher *batcher

	mu      sync.Mutex
	hungry  []*waiter // in order of arrival; bounded by Options.QueueSize
	working bool
}

// want makes a claim wait for units.
func (s *supply) want(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hungry) >= s.batcher.stage.opt.QueueSize {
		w.refuse(s.batcher.stage.tooHot(TooHotFull))
		return
	}
	s.hungry = append(s.hungry, w)
	if !s.working {
		s.working = true
		s.batcher.stage.running.Add(1) // never from zero: a batcher is running
		go s.work()
	}
}

// work brings units until nobody waits for any.
func (s *supply) work() {
	defer s.batcher.stage.running.Done()
	pause := firstLookPause
	timer := stoppedTimer()
	var trouble error // that kept the last look from telling anything
	for s.keep(trouble) {
		var progress bool
		if progress, trouble = s.round(); progress {
			pause = firstLookPause
			continue
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-s.batcher.group.ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, maxLookPause)
	}
}

// keep answers the claims that have waited long enough, all of them when the
// group stops, and reports whether any is left. The units that a claim was not
// given may be in transit: that is too hot, not sold out.
func (s *supply) keep(trouble error) bool {
	patience := min(supplyPatience, s.batcher.stage.opt.Timeout*9/10)
	oldest := time.Now().Add(-patience)
	stopped := s.batcher.group.stopped.Load()
	for _, w := range s.take(func(w *waiter) bool {
		return stopped || w.deadline.Add(-s.batcher.stage.opt.Timeout).Before(oldest)
	}) {
		if stopped || trouble != nil {
			w.refuse(errBusy)
		} else {
			w.refuse(s.batcher.stage.tooHot(TooHotUnits))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = len(s.hungry) > 0
	return s.working
}

// take takes those of the waiting claims that chosen says, in their order.
func (s *supply) take(chosen func(*waiter) bool) (taken []*waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.hungry[:0]
	for _, w := range s.hungry {
		if chosen(w) {
			taken = append(taken, w)
		} else {
			kept = append(kept, w)
		}
	}
	clear(s.hungry[len(kept):])
	s.hungry = kept
	return taken
}

// round looks once at all shards, sends on whom it proves sold out, and brings
// units for the first of the others. It reports whether anybody was helped; the
// error is why the shards could not all be seen.
func (s *supply) round() (progress bool, err error) {
	seen := s.look()
	if seen.err != nil {
		if s.met(seen.err) {
			return false, seen.err
		}
		return s.bring(seen, seen.survey.OnShards()), seen.err
	}
	free := seen.survey.Free()
	if s.most() > free {
		proven, err := s.proven(seen)
		if err != nil {
			s.met(err)
			return false, err
		}
		if proven && time.Since(seen.survey.At) < proofLife {
			s.refuse(free, seen.survey.At)
			progress = true
		}
	}
	return s.bring(seen, free) || progress, nil
}

// bring brings units for the first claim that free units could serve, and
// reports whether anybody was helped.
func (s *supply) bring(seen *view, free int64) bool {
	b := s.batcher
	want := s.first(free)
	if want == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(b.group.ctx, lookTimeout)
	defer cancel()
	have, err := b.stage.opt.Mover.Bring(ctx, b.group.terms, seen.survey, b.shard.Index, want)
	if err != nil && s.met(err) {
		return false
	}
	return s.serve(have)
}

// met reports whether an error finishes lanes. It then ends the group, as a
// claim that met the same does.
func (s *supply) met(err error) bool {
	finished := sale.LaneFinished(err)
	if finished && !s.batcher.group.stopped.Load() {
		s.batcher.fail(err)
	}
	return finished
}

// most is the largest quantity that is waited for.
func (s *supply) most() (most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.hungry {
		most = max(most, int64(w.claim.Quantity))
	}
	return most
}

// first is the quantity of the first claim that free units could serve, or 0.
func (s *supply) first(free int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.hungry {
		if quantity := int64(w.claim.Quantity); quantity <= free {
			return quantity
		}
	}
	return 0
}

// refuse has the claims decided for the last time that want more than was free
// at some instant since. The shard is asked once more because it knows their
// keys: what a claim waited for may have gone to the same claim, sent before or
// at another instance, and then it finds that order. The answer of no is the
// batcher's. A claim that is not decided before the proof is too old for that
// comes back here, for as long as claims wait.
func (s *supply) refuse(free int64, since time.Time) {
	if free == 0 {
		s.batcher.sale.RaiseSoldOut(since)
	}
	s.again(func(w *waiter) bool {
		if int64(w.claim.Quantity) <= free {
			return false
		}
		w.proven = since
		return true
	})
}

// serve has as many claims decided again as the shard has units for.
func (s *supply) serve(have int64) (served bool) {
	return s.again(func(w *waiter) bool {
		quantity := int64(w.claim.Quantity)
		if quantity > have {
			return false
		}
		have -= quantity
		return true
	})
}

// again has those of the waiting claims decided again that ready says, in their
// order, and reports whether there are any.
func (s *supply) again(ready func(*waiter) bool) bool {
	chosen := s.take(ready)
	for _, w := range chosen {
		w.again = true
		if err := s.batcher.join(w); err != nil {
			w.refuse(err)
		}
	}
	return len(chosen) > 0
}

// view is one look at all shards of a product, and the proof that goes with it.
type view struct {
	survey *transfer.Survey
	err    error

	asked    atomic.Bool   // for a proof, by whoever then makes it
	proved   chan struct{} // closed when the proof was tried
	proof    bool
	proofErr error
}

// look looks at all shards of the product. One look serves all of its shards that
// ask while it is being taken.
func (s *supply) look() *view {
	g := s.batcher.group
	seen, _, _ := g.looks.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(g.ctx, lookTimeout)
		defer cancel()
		v := &view{proved: make(chan struct{})}
		v.survey, v.err = s.batcher.stage.opt.Mover.Survey(ctx, g.terms)
		return v, nil
	})
	return seen.(*view)
}

// proven reports whether no more than a view's free units were there at some
// instant since it was begun. It looks once more, for all who ask.
func (s *supply) proven(v *view) (bool, error) {
	if v.asked.Swap(true) {
		<-v.proved
		return v.proof, v.proofErr
	}
	defer close(v.proved)
	g := s.batcher.group
	ctx, cancel := context.WithTimeout(g.ctx, lookTimeout)
	defer cancel()
	v.proof, v.proofErr = s.batcher.stage.opt.Mover.Prove(ctx, g.terms, v.survey)
	return v.proof, v.proofErr
}
