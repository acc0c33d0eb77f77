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

// conflictTries bounds how often one batch is offered again after other
// instances changed the product each time that the store tried.
const conflictTries = 10

// DirectSeller is where the store itself sells.
type DirectSeller interface {
	Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error)
}

// till gathers the claims of one product that the store sells itself. As before
// a ledger, the next batch gathers while one is in flight, and each batch is one
// transaction: the commit, which costs most, is shared by whoever came during the
// last one. One is in flight per instance and product, because the second would
// only wait for the same row.
//
// A claim that is left without an answer may have been sold. Its buyer's key,
// or else its buyer's limit, finds the order when the claim is repeated.
type till struct {
	stage *Stage
	sale  *sale.Sale
	queue chan *waiter // bounded: what does not fit is refused at once
	stop  chan struct{}

	prospect prospect
	stopped  atomic.Bool
}

// till finds the sale's till, or opens it.
func (s *Stage) till(on *sale.Sale) (*till, error) {
	if terms := on.Terms(); terms.Epoch == 0 || terms.HasLedger() && !terms.StoreOpen {
		return nil, errBusy // not preheated, or not taken over yet: the store would refuse
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

// shut stops a till; it answers what waits and ends. The stage's lock is held.
func (t *till) shut() {
	if !t.stopped.Swap(true) {
		close(t.stop)
	}
}

// join queues a claim, unless it cannot be served or the till is shut. A claim
// that was queued is answered.
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
		refuseAll(t.queue, errBusy) // it may have looked for the last time
	}
	return nil
}

// run sells batch after batch until the till is shut, then answers what still
// waits.
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

// settle answers a batch within the time that its youngest claim has.
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

// sell decides claims in one transaction. A batch that fails on its data is
// split until the bad claim stands alone: nobody is refused for a neighbour.
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

// ofData reports whether a transaction failed on its claims: then it changed
// nothing. The others are an outage, lost races, or a product that the store
// does not sell.
func ofData(err error) bool {
	var refusal *seckill.Error
	return err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrConflict) && !errors.As(err, &refusal)
}

// transact performs the transaction, again when others changed the product.
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

// answer tells the store's verdicts. The store alone sells the product: without
// a free unit there, there is none.
func (t *till) answer(asked time.Time, batch []*waiter, result *store.SellResult) {
	if result.Free == 0 {
		t.sale.RaiseSoldOut(asked)
	}
	for i, w := range batch {
		w.tell(answerOf(&result.Verdicts[i].Verdict, result.Verdicts[i].Status))
	}
}

// noteAll remembers who may have an order, for the sold-out gate: before the
// flag is raised, which spares whom we know.
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
