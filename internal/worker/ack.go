package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"seckill/internal/ledger"
	"seckill/internal/queue"
)

// ack acknowledges with the witness of each stream. The queue gives nobody
// what it did not take while this consumer lives, so that is held: it will be
// found confirmed, and acknowledged then.
func (w *Worker) ack(ctx context.Context, done []queue.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackDeadline)
	defer cancel()
	byStream := make(map[string][]queue.Delivery)
	for _, d := range done {
		byStream[d.ID.Stream] = append(byStream[d.ID.Stream], d)
	}
	for stream, deliveries := range byStream {
		ids := make([]queue.ID, len(deliveries))
		for i := range deliveries {
			ids[i] = deliveries[i].ID
		}
		err := w.consumer.Ack(ctx, ids, w.witness[stream])
		if errors.Is(err, queue.ErrLost) {
			if err = w.queueLost(ctx, stream); err == nil {
				// Again at once: these may be the lost ones. Held, they would raise the
				// witness to themselves with their next try, and be lost for ever.
				err = w.consumer.Ack(ctx, ids, w.witness[stream])
			}
		}
		if err != nil {
			w.opt.Logger.Warn("entries not acknowledged", "stream", stream, "entries", len(ids), "error", err)
		}
		// Of a queue that is another store's they are gone, and the store has them.
		if err != nil && !errors.Is(err, ledger.ErrOtherStore) {
			w.hold(deliveries, holdDelay)
			continue
		}
		w.doubts.end(deliveries)
	}
}

// checkWitness asks the queue for what the store has confirmed, by an
// acknowledgement of nothing.
func (w *Worker) checkWitness(ctx context.Context) {
	for stream := range maps.Clone(w.witness) {
		witness, still := w.witness[stream]
		if !still {
			continue // lost with another
		}
		err := w.consumer.Ack(ctx, nil, witness)
		if errors.Is(err, queue.ErrLost) {
			err = w.queueLost(ctx, stream)
		}
		if err != nil {
			w.opt.Logger.Warn("witness not checked; the next acknowledgement will", "stream", stream, "error", err)
		}
	}
}

// queueLost sees to it that a queue which lost entries is noticed once, and
// with the witness that is gone those of all streams that lost theirs as well:
// one loss takes the end of many streams, and noticed one by one, each would
// have every product rebuilt again. If another noticed already, its word is
// taken.
func (w *Worker) queueLost(ctx context.Context, stream string) error {
	mine := w.witness[stream]
	known, err := w.store.Witness(ctx)
	if err != nil {
		return fmt.Errorf("read witness: %w", err)
	}
	delete(w.witness, stream)
	for _, id := range known {
		if id.Stream == stream {
			w.witness[stream] = id
		}
	}
	if w.witness[stream] != mine {
		return nil
	}
	lost := append(w.alsoLost(ctx, known, stream), mine)
	taken, err := w.guard.lost(ctx, lost)
	if err != nil {
		return err
	}
	for _, id := range lost {
		delete(w.witness, id.Stream)
	}
	w.raise(taken)
	return nil
}

// alsoLost are the witnesses of other streams that are gone too.
func (w *Worker) alsoLost(ctx context.Context, known []queue.ID, but string) (lost []queue.ID) {
	for _, id := range known {
		if id.Stream != but && errors.Is(w.consumer.Ack(ctx, nil, id), queue.ErrLost) {
			lost = append(lost, id)
		}
	}
	return lost
}
