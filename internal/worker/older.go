package worker

import (
	"context"
	"errors"
	"fmt"

	"seckill/internal/alert"
	"seckill/internal/queue"
)

// ErrStoreOlder says that the store lacks orders that it had confirmed.
var ErrStoreOlder = errors.New(alert.StoreOlder.Text)

// checkStore detects that an older copy of the store was restored beside a
// newer queue. Then an acknowledgement has carried a witness that the store
// does not have, and the ledger holds units of orders that are gone. It requests
// a rebuild of every product, so the ledgers are built from the store.
//
// The loss counts once: the store then takes over the witness of the queue. If
// that fails, the next start reports the loss again.
func (w *Worker) checkStore(ctx context.Context) error {
	if below, _, err := w.storeBehind(ctx); err != nil || below.IsZero() {
		return err
	}
	// Check twice. Between the two readings another worker may have handled a
	// loss of the queue, which sets the witness of the store back.
	below, has, err := w.storeBehind(ctx)
	if err != nil || below.IsZero() {
		return err
	}
	return w.storeLost(ctx, below, has)
}

// storeBehind returns a witness that the queue has and the store is below, and
// the store's own entry number of that stream. One stream is enough, even if
// others do not answer.
func (w *Worker) storeBehind(ctx context.Context) (carried queue.ID, has uint64, err error) {
	// Ask the queue first: confirmations in between raise the store's witness.
	all, queueErr := w.queue.HighestWitness(ctx)
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
	return queue.ID{}, 0, queueErr
}

// storeLost requests a rebuild of every product, once, and alerts. Only a newer
// copy of the store can bring the lost orders back.
func (w *Worker) storeLost(ctx context.Context, carried queue.ID, has uint64) error {
	cause := fmt.Errorf("%w: stream %q was acknowledged up to entry %d, the store has confirmed up to %d; "+
		"stop and restore a newer store, or accept that the orders in between are lost",
		ErrStoreOlder, carried.Stream, carried.Seq, has)
	w.opt.OnAlert(alert.StoreOlder, 0, cause)
	if err := w.guard.requestRebuilds(ctx); err != nil {
		return err
	}
	taken, err := w.guard.takeOver(ctx)
	w.raise(taken)
	w.opt.OnTrouble(0, cause)
	return err
}
