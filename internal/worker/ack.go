package worker

import (
	"context"
	"errors"
	"fmt"

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
		err := w.consumer.Ack(ctx, deliveries, w.witness[stream])
		if errors.Is(err, queue.ErrLost) {
			unheard := w.queueLost(ctx)
			// Again at once: these may be the lost ones. Held, they would raise the
			// witness to themselves with their next try, and be lost for ever.
			if err = w.consumer.Ack(ctx, deliveries, w.witness[stream]); err != nil {
				err = errors.Join(err, unheard)
			} else if unheard != nil {
				w.opt.Logger.Warn("a loss of the queue was not noticed whole", "stream", stream, "error", unheard)
			}
		}
		if err != nil {
			w.opt.Logger.Warn("entries not acknowledged", "stream", stream, "entries", len(deliveries), "error", err)
			w.hold(deliveries, holdDelay)
			continue
		}
		w.doubts.end(deliveries)
	}
}

// queueLost sees to it that a queue which lost entries is noticed once, and takes
// the store's word for what is confirmed from now on: whoever noticed first has
// put in place of a lost witness what the queue has.
func (w *Worker) queueLost(ctx context.Context) error {
	_, unheard := w.guard.Look(ctx)
	known, err := w.store.Witness(ctx)
	if err != nil {
		return fmt.Errorf("read witness: %w", err)
	}
	clear(w.witness)
	w.raise(known)
	return unheard
}
