package purchase

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/sale"
)

// recogniseTimeout bounds how long a claim waits for what the store knows of
// it; and no more than a third of its time, so that most is left for the ledger.
const recogniseTimeout = 300 * time.Millisecond

// errUnrecognised says that the store does not know the claim.
var errUnrecognised = &seckill.Error{Code: seckill.CodeBusy, Detail: "the store does not know the claim"}

// recognise has the store answer a claim whose buyer the counter may have sold
// to. The ledger has no mark of that order: it would promise another one, which
// the worker ends "failed", and hold a unit for it meanwhile. A claim that the
// store does not know, or not in time, is the ledger's to decide: the worker
// still holds the buyer to one order per key, and to the limit (protocol 5).
func (s *Stage) recognise(on *sale.Sale, claim *seckill.Claim, deadline time.Time) (bought Bought, known bool, err error) {
	t, err := s.till(on)
	if err != nil || t.window == nil {
		return Bought{}, false, err
	}
	if latest := time.Now().Add(min(s.opt.RecogniseWithin, s.opt.Timeout/3)); deadline.After(latest) {
		deadline = latest
	}
	bought, err = s.wait(t.window, claim, deadline)
	return bought, err == nil || seckill.CodeOf(err) == seckill.CodeAlreadyPurchased, err
}

// unlessSold is the last word on a claim for which nothing is left, with the
// ledger or in the share. The shard has looked for its key, and what the counter
// of another instance sold it does not know: the last unit of the share may have
// gone to the same claim. Who cannot be told is told busy.
func (s *Stage) unlessSold(on *sale.Sale, claim *seckill.Claim, deadline time.Time) (Bought, error) {
	bought, known, err := s.recognise(on, claim, deadline)
	switch {
	case known:
		return bought, err
	case err == error(errUnrecognised):
		return Bought{}, errSoldOut
	}
	return Bought{}, errBusy
}

// window is where the till of a product with a fallback share is asked what
// was sold already. Claims gather as before the till itself, whose line they do
// not join: nobody waits behind a sale to be told of an earlier one.
type window struct {
	till  *till
	queue chan *waiter // bounded: what does not fit goes to the ledger
}

// offer queues a claim, unless the queue is full or the till is shut. A claim
// that was queued is answered.
func (n *window) offer(w *waiter) error {
	select {
	case n.queue <- w:
	default:
		return errTooHot
	}
	if n.till.stopped.Load() {
		refuseAll(n.queue, errBusy) // it may have looked for the last time
	}
	return nil
}

// run answers batch after batch until the till is shut, then what still waits.
func (n *window) run() {
	defer n.till.stage.running.Done()
	batch := make([]*waiter, 0, n.till.stage.opt.MaxBatch)
	for {
		select {
		case w := <-n.queue:
			batch = gather(n.queue, batch[:0], w, 0, nil)
		case <-n.till.stop:
			refuseAll(n.queue, errBusy)
			return
		}
		if len(batch) > 0 {
			n.answer(batch)
		}
		clear(batch)
	}
}

// answer tells what the store knows of a batch.
func (n *window) answer(batch []*waiter) {
	claims := make([]seckill.Claim, len(batch)) // given away: a call past its deadline may still read them
	for i, w := range batch {
		claims[i] = w.claim
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.till.stage.opt.RecogniseWithin)
	defer cancel()
	verdicts, err := n.till.stage.opt.Counter.Known(ctx, n.till.sale.ID, claims)
	for i, w := range batch {
		switch {
		case err != nil || i >= len(verdicts):
			w.refuse(errBusy)
		case verdicts[i].Code == 0:
			w.refuse(errUnrecognised)
		default:
			w.answer(&verdicts[i].Verdict, verdicts[i].Status)
		}
	}
}
