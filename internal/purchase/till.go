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

// Counter is where the store itself sells, and knows what it sold.
type Counter interface {
	Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error)
	Known(ctx context.Context, product uint32, claims []seckill.Claim) ([]store.SellVerdict, error)
}

// till gathers the claims of one product that the store sells itself: all of a
// direct product, and what a ledger that is down left undecided of a product
// with a fallback share (protocol 5). As before a ledger, the next batch gathers while one is in
// flight, and each batch is one transaction: the commit, which costs most, is
// shared by whoever came during the last one. One is in flight per instance
// and product, because the second would only wait for the same row.
//
// A claim that is left without an answer may have been sold. Its buyer's key,
// or else its buyer's limit, finds the order when the claim is repeated.
//
// The ledger may have been asked for the same claim, and nobody knows whether
// it sold. That is no reason to refuse the share to its buyer, because the
// claim keeps its order number: the order has one row. Whoever comes second to
// it, the worker with the ledger's late entry or this till, finds it there; and
// what the ledger reserved for an order that the share sold is owed a release.
// A buyer's other orders count against the limit as soon as they are rows; an
// order of the ledger that is confirmed over the limit ends "failed", and is
// released.
type till struct {
	stage  *Stage
	sale   *sale.Sale
	origin seckill.Origin
	queue  chan *waiter // bounded: what does not fit is refused at once
	window *window      // of a product with a fallback share, else nil
	stop   chan struct{}

	prospect prospect
	stopped  atomic.Bool
}

// sell has the store decide a claim.
func (s *Stage) sell(on *sale.Sale, claim *seckill.Claim, deadline time.Time) (Bought, error) {
	t, err := s.till(on)
	if err != nil {
		return Bought{}, err
	}
	return s.wait(t, claim, deadline)
}

// till finds the sale's till, or opens it.
func (s *Stage) till(on *sale.Sale) (*till, error) {
	if on.Terms().Epoch == 0 {
		return nil, errBusy // not preheated yet: the store would refuse
	}
	if t, _ := on.Till.Load().(*till); t != nil && !t.stopped.Load() {
		return t, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, _ := on.Till.Load().(*till); t != nil && !t.stopped.Load() {
		return t, nil
	}
	if s.closed || s.opt.Counter == nil {
		return nil, errBusy
	}
	origin := seckill.OriginDirect
	if on.Terms().HasLedger() {
		origin = seckill.OriginFallback
	}
	t := &till{
		stage: s, sale: on, origin: origin,
		queue: make(chan *waiter, s.opt.QueueSize), stop: make(chan struct{}),
	}
	t.prospect.open(1, &s.opt)
	s.tills[t] = struct{}{}
	s.running.Add(1)
	go t.run()
	if origin == seckill.OriginFallback {
		t.window = &window{till: t, queue: make(chan *waiter, s.opt.QueueSize)}
		s.running.Add(1)
		go t.window.run()
	}
	on.Till.Store(t)
	return t, nil
}

// shut stops a till; it answers what waits and ends. s.mu is held.
func (s *Stage) shut(t *till) {
	if !t.stopped.Swap(true) {
		close(t.stop)
	}
	delete(s.tills, t)
}

// offer queues a claim, unless it cannot be served or the till is shut. A claim
// that was queued is answered.
func (t *till) offer(w *waiter) error {
	if t.stopped.Load() {
		return errBusy
	}
	if err := t.stage.hopeless(&t.prospect, len(t.queue), t.sale.Terms().Group, w); err != nil {
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
			batch = gather(t.queue, batch[:0], w, t.prospect.duration(), tooLate)
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

// settle answers a batch within the time that its youngest claim has; one that
// asked the ledger first has less than those before it.
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
		t.prospect.served(time.Since(asked))
		t.prospect.supplied(result.Free)
		t.answer(asked, batch, &result)
	case split:
		t.sell(ctx, batch[:len(batch)/2])
		t.sell(ctx, batch[len(batch)/2:])
	default:
		t.stage.opt.OnSellFailed(t.sale.ID, err)
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
	defer func() { t.stage.opt.OnSell(len(claims), time.Since(started)) }()
	for range conflictTries {
		result, err = t.stage.opt.Counter.Sell(ctx, store.SellRequest{
			ProductID: t.sale.ID, Origin: t.origin, Claims: claims, ExpireAfter: t.stage.opt.ExpireAfter,
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

// answer tells the store's verdicts. The store alone sells a direct product:
// without a free unit there, there is none. A share that is used up says
// nothing about the ledger's units, so that is busy, not sold out.
func (t *till) answer(asked time.Time, batch []*waiter, result *store.SellResult) {
	alone := t.origin == seckill.OriginDirect
	if result.Free == 0 && alone {
		t.sale.MarkSoldOut(asked)
	}
	for i, w := range batch {
		verdict := &result.Verdicts[i]
		if verdict.Code == ledger.VerdictSoldOut && !alone {
			w.refuse(errBusy)
			continue
		}
		w.answer(&verdict.Verdict, verdict.Status)
	}
}

// noteAll remembers who may have an order, for the sold-out gate: before the
// flag is raised, which spares whom we know.
func (t *till) noteAll(batch []*waiter, result *store.SellResult, err error) {
	if t.origin == seckill.OriginDirect && t.stage.opt.SharedCounter {
		return
	}
	group := t.sale.Terms().Group
	for i, w := range batch {
		if err != nil || result.Verdicts[i].Code != ledger.VerdictSoldOut {
			t.stage.opt.Note(group, w.claim.Buyer)
		}
	}
}
