package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"seckill"
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
			w.hold(deliveries)
		}
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

// queueLost sees to it that a queue which lost entries is noticed once: every
// product is marked for recovery in the store, and only then the queue is mended
// and the witness that is gone forgotten, since the stream may count from below
// again, and with it those of all streams that lost theirs as well. If another
// worker did so already, its word is taken.
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
	// Before the mark: what is lost later wants another.
	lost := w.alsoLost(ctx, known, stream)
	if !mine.IsZero() {
		lost = append(lost, mine)
	}
	products, err := w.markAll(ctx)
	if err != nil {
		return err
	}
	if examining, ok := w.queue.(queue.Examining); ok {
		if _, err := examining.Examine(ctx, 0, true); err != nil {
			return fmt.Errorf("mend queue: %w", err)
		}
	}
	for _, id := range lost {
		if err := w.store.ForgetWitness(ctx, id); err != nil {
			return fmt.Errorf("forget witness: %w", err)
		}
		delete(w.witness, id.Stream)
	}
	// What the queue still remembers is of before its loss, and now above the
	// store's nothing: it must not pass for a loss of the store's.
	err = w.takeOver(ctx, products)
	w.opt.OnTrouble(0, queue.ErrLost)
	return err
}

// streamLost is queueLost of a stream that cannot even be read.
func (w *Worker) streamLost(ctx context.Context, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, ackDeadline)
	defer cancel()
	return w.queueLost(ctx, stream)
}

// alsoLost are the witnesses of other streams that are gone too. One loss takes
// the end of many streams; noticed one by one, each would have every product
// rebuilt again.
func (w *Worker) alsoLost(ctx context.Context, known []queue.ID, but string) (lost []queue.ID) {
	for _, id := range known {
		if id.Stream != but && errors.Is(w.consumer.Ack(ctx, nil, id), queue.ErrLost) {
			lost = append(lost, id)
		}
	}
	return lost
}

// markAll marks every preheated product for recovery in the store, and returns
// all products.
func (w *Worker) markAll(ctx context.Context) ([]seckill.Product, error) {
	products, err := w.store.Products(ctx)
	if err != nil {
		return nil, fmt.Errorf("list products: %w", err)
	}
	for i := range products {
		if p := &products[i]; p.Epoch > 0 {
			if err := w.store.SetRebuilding(ctx, p.ID, p.Epoch, true); err != nil {
				return nil, fmt.Errorf("mark product %d for recovery: %w", p.ID, err)
			}
		}
	}
	return products, nil
}
