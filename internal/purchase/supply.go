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
	// other shards. With it, every answer comes within a second.
	supplyPatience = 800 * time.Millisecond
	// lookTimeout bounds one survey of all shards.
	lookTimeout = 500 * time.Millisecond
	// proofLife is the maximum age of a proof that no unit was free (I7).
	proofLife = time.Second
	// firstLookPause and maxLookPause bound the growing pause between surveys
	// without progress. Units in transit arrive within milliseconds.
	firstLookPause = time.Millisecond
	maxLookPause   = 50 * time.Millisecond
)

// supply serves one shard of several. Claims that found the shard empty wait here while
// units are brought from other shards, and are then decided again. A claim is sold out
// only after a proof over all shards and another answer of its shard.
type supply struct {
	batcher *batcher

	mu      sync.Mutex
	hungry  []*waiter // in order of arrival; bounded by Options.QueueSize
	working bool
}

// want queues a claim for units.
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

// work brings units until no claim waits.
func (s *supply) work() {
	defer s.batcher.stage.running.Done()
	pause := firstLookPause
	timer := stoppedTimer()
	var trouble error // error of the last survey
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

// keep answers the claims that have waited long enough, or all if the group stops. It
// reports whether any is left. The units for a claim may be in transit, so the answer
// is too_hot, not sold_out.
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

// take removes the waiting claims for which chosen is true, in order.
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

// round surveys all shards once, sends back the claims that it proves sold out, and
// brings units for the first of the others. It reports progress. The error says why
// not all shards could be read.
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

// bring brings units for the first claim that free units can serve. It reports
// progress.
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

// met reports whether an error finishes the lanes. If so, it ends the group, as after
// such a claim.
func (s *supply) met(err error) bool {
	finished := sale.LaneFinished(err)
	if finished && !s.batcher.group.stopped.Load() {
		s.batcher.fail(err)
	}
	return finished
}

// most returns the largest requested quantity.
func (s *supply) most() (most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.hungry {
		most = max(most, int64(w.claim.Quantity))
	}
	return most
}

// first returns the quantity of the first claim that free units can serve, or 0.
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

// refuse sends back, for the last decision, the claims for more units than were free
// at some instant since. Their shard decides them once more, because it knows their
// keys: the units may have gone to an earlier request with the same key, also at
// another instance, and the claim then finds that order. The batcher gives the
// answer sold_out. If the proof is too old by then, the claim waits here again.
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

// serve sends back as many claims as the shard has units for.
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

// again sends back the waiting claims for which ready is true, in order. It reports
// whether there are any.
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

// view is one survey of all shards of a product, with its proof.
type view struct {
	survey *transfer.Survey
	err    error

	asked    atomic.Bool   // a proof was requested; the first one to request it makes it
	proved   chan struct{} // closed after the attempt to prove
	proof    bool
	proofErr error
}

// look surveys all shards of the product. Concurrent calls of its shards share one
// survey.
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

// proven reports whether at some instant since the survey began no more than its free
// units were free. It surveys once more, for all callers.
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
