package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// forgotten is a store whose witness another worker has had forgotten.
type forgotten struct{ Store }

func (forgotten) Witness(context.Context) ([]queue.ID, error) { return nil, nil }

// setBack is a queue that lost what the worker's witness names.
type setBack struct{ queue.Consumer }

func (setBack) Ack(_ context.Context, _ []queue.Delivery, witness queue.ID) error {
	if !witness.IsZero() {
		return queue.ErrLost
	}
	return nil
}

// emptied is a queue that has lost what its streams had that answer.
type emptied struct{ queue.Queue }

func (emptied) Lost(_ context.Context, witnesses []queue.ID) ([]queue.ID, error) {
	return witnesses, errAway
}

// errAway says that other streams did not answer.
var errAway = errors.New("a part of the queue is away")

func (emptied) HighestWitness(context.Context) ([]queue.ID, error) { return nil, nil }

// A second worker that still carries the lost witness takes the first one's
// word for it: nothing is marked for recovery once more.
func TestALossThatAnotherWorkerToldIsNotToldAgain(t *testing.T) {
	w := New(emptied{}, forgotten{}, nil, Options{
		Logger:    slog.New(slog.DiscardHandler),
		OnTrouble: func(uint32, error) { t.Error("the loss was told again") },
	})
	w.consumer = setBack{}
	w.witness["journal"] = queue.ID{Stream: "journal", Seq: 7}
	w.ack(t.Context(), []queue.Delivery{{ID: queue.ID{Stream: "journal", Seq: 8}, Entry: seckill.Entry{ProductID: 1}}})
	if len(w.witness) != 0 {
		t.Errorf("the worker still carries %v", w.witness)
	}
}

// The lost entries may be those that the worker is about to acknowledge, which
// the store has just made the witness. They are done with: held, they would be
// confirmed again, and be the witness again, for ever.
func TestLostEntriesThatTheStoreHasAreDoneWith(t *testing.T) {
	w := New(emptied{}, forgotten{}, nil, Options{Logger: slog.New(slog.DiscardHandler)})
	w.consumer = setBack{}
	gone := queue.ID{Stream: "journal", Seq: 7}
	w.witness["journal"] = gone
	w.ack(t.Context(), []queue.Delivery{{ID: gone, Entry: seckill.Entry{ProductID: 1, Claims: make([]seckill.Claim, 2)}}})
	if w.held.claims != 0 || len(w.witness) != 0 {
		t.Errorf("%d claims are held, the witness is %v", w.held.claims, w.witness)
	}
}

// storeOfLosses has witnesses, and counts how often everything is marked.
type storeOfLosses struct {
	Store
	known []queue.ID
	marks int
}

func (s *storeOfLosses) Witness(context.Context) ([]queue.ID, error) { return s.known, nil }

func (s *storeOfLosses) CurrentProducts(context.Context) ([]seckill.Product, error) { return nil, nil }

func (s *storeOfLosses) Products(context.Context, store.ProductFilter) ([]seckill.Product, error) {
	return nil, nil
}

func (s *storeOfLosses) WitnessLost(_ context.Context, lost, _ []queue.ID) (bool, error) {
	s.marks++
	s.known = slices.DeleteFunc(slices.Clone(s.known), func(known queue.ID) bool { return slices.Contains(lost, known) })
	return true, nil
}

// A server that is set back loses the end of every stream at once.
func TestOneLossOfManyStreamsIsOneRecovery(t *testing.T) {
	s := &storeOfLosses{}
	told := 0
	w := New(emptied{}, s, nil, Options{Logger: slog.New(slog.DiscardHandler), OnTrouble: func(uint32, error) { told++ }})
	w.consumer = setBack{}
	for seq, stream := range []string{"b1", "b2", "b3"} {
		id := queue.ID{Stream: stream, Seq: uint64(seq + 1)}
		s.known, w.witness[stream] = append(s.known, id), id
	}
	if err := w.queueLost(t.Context()); !errors.Is(err, errAway) {
		t.Error(err)
	}
	if s.marks != 1 || told != 1 || len(s.known) != 0 || len(w.witness) != 0 {
		t.Errorf("marked %d times, told %d times, left are %v and %v", s.marks, told, s.known, w.witness)
	}
}
