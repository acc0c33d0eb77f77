package worker

import (
	"context"
	"log/slog"
	"testing"

	"seckill"
	"seckill/internal/queue"
)

// forgotten is a store whose witness another worker has had forgotten.
type forgotten struct{ Store }

func (forgotten) Witness(context.Context) ([]queue.ID, error) { return nil, nil }

// setBack is a queue that lost what the worker's witness names.
type setBack struct{ queue.Consumer }

func (setBack) Ack(_ context.Context, _ []queue.ID, witness queue.ID) error {
	if !witness.IsZero() {
		return queue.ErrLost
	}
	return nil
}

// A second worker that still carries the lost witness takes the first one's
// word for it: nothing is marked for recovery once more.
func TestALossThatAnotherWorkerToldIsNotToldAgain(t *testing.T) {
	w := New(nil, forgotten{}, nil, Options{
		Logger:    slog.New(slog.DiscardHandler),
		OnTrouble: func(uint32, error) { t.Error("the loss was told again") },
	})
	w.consumer = setBack{}
	w.witness["journal"] = queue.ID{Stream: "journal", Seq: 7}
	w.checkWitness(t.Context())
	if len(w.witness) != 0 {
		t.Errorf("the worker still carries %v", w.witness)
	}
}

// The lost entries may be those that the worker is about to acknowledge, which
// the store has just made the witness. They are done with: held, they would be
// confirmed again, and be the witness again, for ever.
func TestLostEntriesThatTheStoreHasAreDoneWith(t *testing.T) {
	w := New(nil, forgotten{}, nil, Options{Logger: slog.New(slog.DiscardHandler)})
	w.consumer = setBack{}
	gone := queue.ID{Stream: "journal", Seq: 7}
	w.witness["journal"] = gone
	w.ack(t.Context(), []queue.Delivery{{ID: gone, Entry: seckill.Entry{ProductID: 1, Claims: make([]seckill.Claim, 2)}}})
	if w.held.claims != 0 || len(w.witness) != 0 {
		t.Errorf("%d claims are held, the witness is %v", w.held.claims, w.witness)
	}
}
