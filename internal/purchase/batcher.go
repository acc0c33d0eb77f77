package purchase

import (
	"errors"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
)

// batcher gathers the claims of one shard for its lanes.
type batcher struct {
	stage   *Stage
	group   *group
	sale    *sale.Sale
	shard   ledger.Shard
	queue   chan *waiter // bounded: if it is full, claims are refused at once
	lanes   [lanesPerShard]*ledger.Lane
	unheard [lanesPerShard]unheard // by lane

	prospect prospect
	left     atomic.Int64 // free units in the last reply; unknown before the first
	breaker  breaker
	supply   *supply // nil if no other shard can send units
}

// join queues a claim. It refuses the claim if it cannot be served, if the ledger does
// not answer, or if the batcher stops. Every queued claim gets an answer.
func (b *batcher) join(w *waiter) error {
	if b.deaf() {
		return errBusy
	}
	if !w.again { // a claim that comes back was checked already
		if err := b.stage.hopeless(&b.prospect, len(b.queue), b.shard.Group, w.claim.Buyer); err != nil {
			return err
		}
	}
	select {
	case b.queue <- w:
	default:
		return b.stage.tooHot(TooHotFull)
	}
	if b.deaf() {
		refuseAll(b.queue, errBusy) // its lanes may have looked at the queue for the last time
	}
	return nil
}

// deaf reports whether claims would wait in vain.
func (b *batcher) deaf() bool { return b.group.stopped.Load() || b.breaker.open.Load() }

// run sends batches on one lane until the group stops. Then it answers all claims that
// still wait.
func (b *batcher) run(lane *ledger.Lane, open *unheard) {
	defer b.stage.running.Done()
	batch := make([]*waiter, 0, b.stage.opt.MaxBatch)
	claims := make([]seckill.Claim, 0, b.stage.opt.MaxBatch)
	tooLate := func() error { return b.stage.tooHot(TooHotLate) }
	for {
		if b.breaker.open.Load() {
			refuseAll(b.queue, errBusy)
			b.listen(lane)
		}
		select {
		case w := <-b.queue:
			batch = gather(b.queue, batch[:0], w, b.prospect.step.Load(), tooLate)
		case <-b.group.ctx.Done():
			refuseAll(b.queue, errBusy)
			return
		}
		if len(batch) == 0 {
			continue
		}
		claims = claims[:0]
		for _, w := range batch {
			claims = append(claims, w.claim)
		}
		if !b.send(lane, open, batch, claims) {
			// A call may still read the claims, so it keeps them.
			claims = make([]seckill.Claim, 0, b.stage.opt.MaxBatch)
		}
		clear(batch)
	}
}

// send performs one ledger step and answers its claims. It reports whether the slice
// of claims may be reused. It blocks until the lane knows the outcome of the step or
// the breaker opens. Claimants have their own timeouts.
func (b *batcher) send(lane *ledger.Lane, open *unheard, batch []*waiter, claims []seckill.Claim) bool {
	terms := b.sale.Terms()
	asked, empty := time.Now(), b.sale.Empty()
	step := ledger.Reserve{
		At: b.stage.clock.Now(), PriceCents: terms.PriceCents, Currency: terms.Currency, Name: terms.Name, Claims: claims,
	}
	open.begin(claims)
	call := b.sale.Begin()
	result, err := lane.Do(b.breaker.now.Load().ctx, step)
	took := time.Since(asked)
	if err == nil && len(result.Verdicts) != len(batch) {
		err = errVerdicts
	}
	// Remember these buyers before the call ends and before the sold-out flag is set:
	// the flag exempts remembered buyers.
	for i, w := range batch {
		if sale.Unsettled(err) || err == nil && result.Verdicts[i].Code != ledger.VerdictSoldOut {
			b.stage.opt.Memory.Learn(b.shard.Group, w.claim.Buyer)
		}
	}
	b.sale.End(call)
	b.stage.opt.Figures.ReserveClaims.Observe(float64(len(batch)))
	b.stage.opt.Figures.ReserveSeconds.Observe(took.Seconds())
	if err != nil {
		open.end(err)
		for _, w := range batch {
			w.refuse(errBusy)
		}
		if sale.LaneFinished(err) {
			b.fail(err)
		}
		return false
	}
	b.left.Store(result.Free)
	free := result.Free
	if b.supply != nil {
		free = b.group.within()
	}
	b.prospect.learn(took, free)
	if b.sale.Hold(b.group.epoch) {
		b.promised(&step, result.Verdicts, terms)
		b.sale.Unhold()
		open.end(nil)
		b.answer(batch, &result, asked, empty)
	} else {
		// The product has a new epoch. A recovery may already rely on all promises of
		// the old epoch being known, so no further one may be made.
		open.end(nil)
		for _, w := range batch {
			w.refuse(errBusy)
		}
	}
	// A call that timed out may still hang and read the claims, even if the lane
	// learned the result by asking.
	return took < b.stage.callTimeout
}

// answer answers the claims of a step by the ledger's verdicts. Some claims wait for
// units or for the journal instead. asked is the start of the step; empty says
// whether the sale was sold out then.
func (b *batcher) answer(batch []*waiter, result *ledger.Result, asked time.Time, empty bool) {
	if result.Free == 0 && b.supply == nil {
		b.sale.RaiseSoldOut(asked)
	}
	var accepted *waiter
	for i, w := range batch {
		verdict := &result.Verdicts[i]
		switch {
		case verdict.Code == ledger.VerdictAccepted && b.stage.opt.Journal != nil:
			w.next, accepted = accepted, w
		case verdict.Code == ledger.VerdictSoldOut && b.supply != nil && !b.provenFor(w, empty):
			b.supply.want(w) // other shards may have units
		case verdict.Code == ledger.VerdictRepeated && b.isUnheard(verdict.OrderNo):
			w.refuse(errBusy)
		case verdict.Code == ledger.VerdictUndecided:
			w.refuse(b.stage.tooHot(TooHotMarks))
		default:
			w.tell(answerOf(verdict, seckill.OrderQueued))
		}
	}
	if accepted != nil {
		b.stage.answerSynced(accepted)
	}
}

var errVerdicts = errors.New("the ledger did not decide every claim")

// provenFor reports whether a claim that its shard could not serve is sold out (I7). The
// proof must be young enough and older than the step; empty says so for the sale's
// proof. A later proof is not enough: the last unit may have gone in between to an
// earlier request with the same key.
func (b *batcher) provenFor(w *waiter, empty bool) bool {
	return empty && b.sale.Empty() || time.Since(w.proven) < proofLife
}

// fail ends the group, because its lanes are finished. The next claim gets the
// present epoch, or busy.
func (b *batcher) fail(err error) {
	b.stage.mu.Lock()
	b.group.failedAt = time.Now()
	b.group.retire()
	b.stage.mu.Unlock()
	b.stage.opt.Recoverer.RequestRecovery(b.shard.Product, err)
}

// answerOf converts a verdict to the answer for the claimant. stands is the status of
// the claim's order.
func answerOf(v *ledger.Verdict, stands seckill.OrderStatus) (Bought, error) {
	switch v.Code {
	case ledger.VerdictAccepted, ledger.VerdictRepeated:
		return Bought{v.OrderNo, stands}, nil
	case ledger.VerdictSoldOut:
		return Bought{}, errSoldOut
	case ledger.VerdictOverLimit:
		return Bought{}, &seckill.Error{Code: seckill.CodeAlreadyPurchased, OrderNos: v.Held}
	case ledger.VerdictPaused:
		return Bought{}, errPaused
	case ledger.VerdictEnded:
		return Bought{}, errEnded
	case ledger.VerdictRefused:
		return Bought{}, errReturned
	}
	return Bought{}, errors.New("ledger gave an unknown verdict")
}

func (w *waiter) refuse(refusal error) { w.tell(Bought{}, refusal) }

func (w *waiter) tell(bought Bought, err error) {
	w.bought, w.err = bought, err
	w.done <- struct{}{} // never blocks: one answer per waiter, capacity 1
}
