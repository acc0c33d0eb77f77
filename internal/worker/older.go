package worker

import (
	"context"
	"errors"
	"fmt"

	"seckill/internal/alert"
	"seckill/internal/queue"
)

// ErrStoreOlder says that the store misses orders that it had confirmed.
var ErrStoreOlder = errors.New(alert.StoreOlder.Text)

// checkStore finds a store that was restored from an older copy beside a newer
// queue: an acknowledgement has carried a witness that the store does not have.
// The ledger still holds units for orders that are gone. Every product is
// marked for recovery, so that its ledger is built from what the store has.
//
// It is noticed once: the store then takes the queue's witness over. If it
// cannot, the next start tells again.
func (w *Worker) checkStore(ctx context.Context) error {
	if below, _, err := w.below(ctx); err != nil || below.IsZero() {
		return err
	}
	// Once more: between the two questions a loss of the queue may have been
	// noticed, which sets the store back to what the queue has.
	below, has, err := w.below(ctx)
	if err != nil || below.IsZero() {
		return err
	}
	return w.storeLost(ctx, below, has)
}

// below is a witness that the queue has been told and the store is below, and
// what the store has of its stream. One stream is enough to tell, whatever
// others do not answer.
func (w *Worker) below(ctx context.Context) (carried queue.ID, has uint64, err error) {
	// The queue is asked first: what others confirm meanwhile raises the store's.
	all, unheard := w.queue.HighestWitness(ctx)
	known, err := w.store.Witness(ctx)
	if err != nil {
		return queue.ID{}, 0, fmt.Errorf("read witness: %w", err)
	}
	confirmed := make(map[string]uint64, len(known))
	for _, id := range known {
		confirmed[id.Stream] = id.Seq
	}
	for _, id := range all {
		if id.Seq > confirmed[id.Stream] {
			return id, confirmed[id.Stream], nil
		}
	}
	return queue.ID{}, 0, unheard
}

// storeLost has everything recovered, once, and tells the operator: the lost
// orders themselves nobody can bring back but a newer copy.
func (w *Worker) storeLost(ctx context.Context, carried queue.ID, has uint64) error {
	cause := fmt.Errorf("%w: stream %q was acknowledged up to entry %d, the store has confirmed up to %d; "+
		"stop and restore a newer store, or accept that the orders in between are lost",
		ErrStoreOlder, carried.Stream, carried.Seq, has)
	w.opt.OnAlert(alert.StoreOlder, 0, cause)
	if err := w.guard.markAll(ctx); err != nil {
		return err
	}
	taken, err := w.guard.takeOver(ctx)
	w.raise(taken)
	w.opt.OnTrouble(0, cause)
	return err
}
