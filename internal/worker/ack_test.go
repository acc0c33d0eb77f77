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

// forgottenWitness is a store whose lost witness another worker has already
// replaced.
type forgottenWitness struct{ Store }

func (forgottenWitness) Witness(context.Context) ([]queue.ID, error) { return nil, nil }

// setBackConsumer returns ErrLost as long as the worker passes a witness.
type setBackConsumer struct{ queue.Consumer }

func (setBackConsumer) Ack(_ context.Context, _ []queue.Delivery, witness queue.ID) error {
	if !witness.IsZero() {
		return queue.ErrLost
	}
	return nil
}

// emptiedQueue has lost all entries of the streams that answer.
type emptiedQueue struct{ queue.Queue }

func (emptiedQueue) Lost(_ context.Context, witnesses []queue.ID) ([]queue.ID, error) {
	return witnesses, errAway
}

// errAway says that other streams did not answer.
var errAway = errors.New("a part of the queue is away")

func (emptiedQueue) HighestWitness(context.Context) ([]queue.ID, error) { return nil, nil }

// A second worker still has the lost witness. It reads the store, and requests
// no second recovery.
func TestAck_LossHandledByAnotherWorkerIsNotReportedAgain(t *testing.T) {
	w := New(emptiedQueue{}, forgottenWitness{}, nil, Options{
		Logger:    slog.New(slog.DiscardHandler),
		OnTrouble: func(uint32, error) { t.Error("the loss was reported again") },
	})
	w.consumer = setBackConsumer{}
	w.witness["journal"] = queue.ID{Stream: "journal", Seq: 7}
	w.ack(t.Context(), []queue.Delivery{{ID: queue.ID{Stream: "journal", Seq: 8}, Entry: seckill.Entry{ProductID: 1}}})
	if len(w.witness) != 0 {
		t.Errorf("the worker still has the witness %v", w.witness)
	}
}

// The lost entries may be those that the worker is about to acknowledge, which
// are now the witness. If it held them, they would be confirmed again and be
// the witness again, for ever.
func TestAck_LostEntriesThatAreConfirmedAreNotHeld(t *testing.T) {
	w := New(emptiedQueue{}, forgottenWitness{}, nil, Options{Logger: slog.New(slog.DiscardHandler)})
	w.consumer = setBackConsumer{}
	gone := queue.ID{Stream: "journal", Seq: 7}
	w.witness["journal"] = gone
	w.ack(t.Context(), []queue.Delivery{{ID: gone, Entry: seckill.Entry{ProductID: 1, Claims: make([]seckill.Claim, 2)}}})
	if w.held.claims != 0 || len(w.witness) != 0 {
		t.Errorf("%d claims are held, the witness is %v", w.held.claims, w.witness)
	}
}

// lossStore has witnesses, and counts how often a loss is recorded.
type lossStore struct {
	Store
	known    []queue.ID
	requests int
}

func (s *lossStore) Witness(context.Context) ([]queue.ID, error) { return s.known, nil }

func (s *lossStore) CurrentProducts(context.Context) ([]seckill.Product, error) { return nil, nil }

func (s *lossStore) Products(context.Context, store.ProductFilter) ([]seckill.Product, error) {
	return nil, nil
}

func (s *lossStore) WitnessLost(_ context.Context, lost, _ []queue.ID) (bool, error) {
	s.requests++
	s.known = slices.DeleteFunc(slices.Clone(s.known), func(known queue.ID) bool { return slices.Contains(lost, known) })
	return true, nil
}

// A server that is set back loses the end of every stream at once.
func TestQueueLost_ManyStreamsAreOneRecovery(t *testing.T) {
	s := &lossStore{}
	told := 0
	w := New(emptiedQueue{}, s, nil, Options{Logger: slog.New(slog.DiscardHandler), OnTrouble: func(uint32, error) { told++ }})
	w.consumer = setBackConsumer{}
	for seq, stream := range []string{"b1", "b2", "b3"} {
		id := queue.ID{Stream: stream, Seq: uint64(seq + 1)}
		s.known, w.witness[stream] = append(s.known, id), id
	}
	if err := w.queueLost(t.Context()); !errors.Is(err, errAway) {
		t.Error(err)
	}
	if s.requests != 1 || told != 1 || len(s.known) != 0 || len(w.witness) != 0 {
		t.Errorf("recorded %d times, reported %d times; witnesses left: store %v, worker %v", s.requests, told, s.known, w.witness)
	}
}
