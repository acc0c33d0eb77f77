package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"seckill"
	"seckill/internal/store"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// meetingStore holds transactions until one of each product has begun.
type meetingStore struct {
	worker.Store
	meet sync.WaitGroup
	once sync.Map // by product
}

func (s *meetingStore) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	if _, again := s.once.LoadOrStore(req.ProductID, true); !again {
		s.meet.Done()
	}
	met := make(chan struct{})
	go func() { s.meet.Wait(); close(met) }()
	select {
	case <-met:
		return s.Store.Confirm(ctx, req)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Each worker of an instance has its own name, transaction and maybeStored set.
// Together they write every order once.
func TestCrew_WorkersWriteAtTheSameTime(t *testing.T) {
	const members = 3
	c := newFixture(t)
	meeting := &meetingStore{Store: c.Store}
	meeting.meet.Add(members)
	crew := worker.NewCrew(members, c.queue, meeting, c.Lanes, c.options(func(o *worker.Options) { o.BatchSize, o.BatchWait = 1, time.Millisecond }))
	var nos []seckill.OrderNo
	for id := uint32(1); id <= members; id++ {
		nos = append(nos, c.Buy(t, c.Open(t, id, 10), "ann")...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		crew.Run(ctx)
	}()
	c.waitDrained(t)
	c.statuses(t, seckill.OrderPending, nos...)
	for _, no := range nos {
		rig.Until(t, "the order is acknowledged", func() bool { return !crew.MayBeStored(no) })
	}
	cancel()
	select {
	case <-done:
	case <-time.After(rig.Patience):
		t.Fatal("the crew does not stop")
	}
}
