package purchase

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/sale"
	"seckill/internal/store"
)

// conflictTries bounds the attempts of a batch after optimistic-lock conflicts with other
// instances.
const conflictTries = 10

// DirectSeller sells from the store.
type DirectSeller interface {
	Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error)
}

// till gathers the claims of a product that the store sells without a ledger. As in a
// batcher, the next batch gathers while one is in flight. Each batch is one
// transaction, so its claims share the commit, the largest cost. There is one batch in
// flight per instance and product, because a second would only wait for the same row.
//
// A claim without an answer may have been sold. If it is repeated, the buyer's key or
// else the buyer's limit finds the order.
type till struct {
	stage *Stage
	sale  *sale.Sale
	queue chan *waiter // bounded: if it is full, claims are refused at once
	stop  chan struct{}

	prospect prospect
	stopped  atomic.Bool
}

// till returns the sale's till, or opens it.
func (s *Stage) till(on *sale.Sale) (*till, error) {
	if terms := on.Terms(); terms.Epoch == 0 || terms.HasLedger() && !terms.StoreOpen {
		return nil, errBusy // not preheated or not taken over yet: the store would refuse
	}
	if t := s.tills.of(on); t != nil && !t.stopped.Load() {
		return t, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tills.of(on); t != nil && !t.stopped.Load() {
		return t, nil
	}
	if s.closed || s.opt.DirectSeller == nil {
		return nil, errBusy
	}
	t := &till{stage: s, sale: on, queue: make(chan *waiter, s.opt.QueueSize), stop: make(chan struct{})}
	t.prospect.open(1, &s.opt)
	s.running.Add(1)
	go t.run()
	s.tills.set(on, t)
	return t, nil
}

// shut stops a till, which answers the waiting claims and ends. The stage's lock is held.
func (t *till) shut() {
	if !t.stopped.Swap(true) {
		close(t.stop)
	}
}

// join queues a claim, unless it cannot be served or the till is shut. Every queued
// claim gets an answer.
func (t *till) join(w *waiter) error {
	if t.stopped.Load() {
		return errBusy
	}
	if err := t.stage.hopeless(&t.prospect, len(t.queue), t.sale.Terms().Group, w.claim.Buyer); err != nil {
		return err
	}
	select {
	case t.queue <- w:
	default:
		return t.stage.tooHot(TooHotFull)
	}
	if t.stopped.Load() {
		refuseAll(t.queue, errBusy) // the till may have looked at the queue for the last time
	}
	return nil
}

// run sells batches until the till is shut, then answers the waiting claims.
func (t *till) run() {
	defer t.stage.running.Done()
	batch := make([]*waiter, 0, t.stage.opt.MaxBatch)
	tooLate := func() error { return t.stage.tooHot(TooHotLate) }
	for {
		select {
		case w := <-t.queue:
			batch = gather(t.queue, batch[:0], w, t.prospect.step.Load(), tooLate)
		case <-t.stop:
			refuseAll(t.queue, errBusy)
			return
		}
		if len(batch) > 0 {
			t.settle(batch)
		}
		clear(batch)
	}
}

// settle answers a batch before the deadline of its youngest claim.
func (t *till) settle(batch []*waiter) {
	last := batch[0].deadline
	for _, w := range batch {
		if w.deadline.After(last) {
			last = w.deadline
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), last)
	defer cancel()
	t.sell(ctx, batch)
}

// sell decides claims in one transaction. If a batch fails because of its data, sell splits
// it until the bad claim is alone, so that no other claim is refused for it.
func (t *till) sell(ctx context.Context, batch []*waiter) {
	asked, call := time.Now(), t.sale.Begin()
	result, err := t.transact(ctx, batch)
	split := len(batch) > 1 && ofData(err) && ctx.Err() == nil
	if !split {
		t.noteAll(batch, &result, err)
	}
	t.sale.End(call)
	switch {
	case err == nil:
		t.prospect.learn(time.Since(asked), result.Free)
		t.answer(asked, batch, &result)
	case split:
		t.sell(ctx, batch[:len(batch)/2])
		t.sell(ctx, batch[len(batch)/2:])
	default:
		t.stage.opt.Reports.SellFailed(t.sale.ID, err)
		for _, w := range batch {
			w.refuse(errBusy)
		}
	}
}

// ofData reports whether a transaction failed because of its claims; then it changed
// nothing. Other failures are an outage, lost races, or a product that the store does
// not sell.
func ofData(err error) bool {
	var refusal *seckill.Error
	return err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrConflict) && !errors.As(err, &refusal)
}

// transact runs the transaction, and retries it after conflicts.
func (t *till) transact(ctx context.Context, batch []*waiter) (result store.SellResult, err error) {
	claims := make([]seckill.Claim, len(batch)) // given away: a call past its deadline may still read them
	for i, w := range batch {
		claims[i] = w.claim
	}
	started := time.Now()
	defer func() {
		t.stage.opt.Figures.SellClaims.Observe(float64(len(claims)))
		t.stage.opt.Figures.SellSeconds.Observe(time.Since(started).Seconds())
	}()
	for range conflictTries {
		result, err = t.stage.opt.DirectSeller.Sell(ctx, store.SellRequest{
			ProductID: t.sale.ID, Epoch: t.sale.Terms().Epoch, Claims: claims, ExpireAfter: t.stage.opt.ExpireAfter,
		})
		if !errors.Is(err, store.ErrConflict) || ctx.Err() != nil {
			break
		}
	}
	if err == nil && len(result.Verdicts) != len(batch) {
		err = &seckill.Error{Code: seckill.CodeBusy, Detail: "the store did not decide every claim"}
	}
	return result, err
}

// answer answers claims by the store's verdicts. Only the store sells the product, so if
// it has no free unit, the product is sold out.
func (t *till) answer(asked time.Time, batch []*waiter, result *store.SellResult) {
	if result.Free == 0 {
		t.sale.RaiseSoldOut(asked)
	}
	for i, w := range batch {
		w.tell(answerOf(&result.Verdicts[i].Verdict, result.Verdicts[i].Status))
	}
}

// noteAll remembers buyers who may have an order. This must happen before the sold-out
// flag is set: the flag exempts remembered buyers.
func (t *till) noteAll(batch []*waiter, result *store.SellResult, err error) {
	if t.stage.opt.SharedStore {
		return
	}
	group := t.sale.Terms().Group
	for i, w := range batch {
		if err != nil || result.Verdicts[i].Code != ledger.VerdictSoldOut {
			t.stage.opt.Memory.Learn(group, w.claim.Buyer)
		}
	}
}
