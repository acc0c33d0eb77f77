package worker

import (
	"context"
	"errors"
	"fmt"

	"seckill/internal/queue"
)

// ack acknowledges deliveries, and passes the witness of each stream. If the
// queue does not take the acknowledgement, the worker holds the deliveries: the
// queue gives them to no other consumer while this one lives. The next try
// finds them confirmed and acknowledges them again.
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
			checkErr := w.queueLost(ctx)
			// Acknowledge again at once: these may be the lost entries. If the
			// worker held them, the next try would make them the witness again,
			// and the loss would repeat for ever.
			if err = w.consumer.Ack(ctx, deliveries, w.witness[stream]); err != nil {
				err = errors.Join(err, checkErr)
			} else if checkErr != nil {
				w.opt.Logger.Warn("loss of the queue not fully handled; the next check will", "stream", stream, "error", checkErr)
			}
		}
		if err != nil {
			w.opt.Logger.Warn("entries not acknowledged", "stream", stream, "entries", len(deliveries), "error", err)
			w.hold(deliveries, holdDelay)
			continue
		}
		w.maybeStored.end(deliveries)
	}
}

// queueLost has the guard handle a loss of entries, which counts once for all
// workers. Then it reads the witnesses again: a lost witness has been replaced
// by the one that the queue has.
func (w *Worker) queueLost(ctx context.Context) error {
	_, checkErr := w.guard.Look(ctx)
	known, err := w.store.Witness(ctx)
	if err != nil {
		return fmt.Errorf("read witness: %w", err)
	}
	clear(w.witness)
	w.raise(known)
	return checkErr
}
