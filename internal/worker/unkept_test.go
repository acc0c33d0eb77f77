package worker_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/store"
	"seckill/internal/store/storetest"
	"seckill/internal/worker"
	"seckill/test/rig"
)

// soldTwice is a crew whose ledger was set back unnoticed: the store has orders
// that it does not know, and it has promised others to the same buyers.
type soldTwice struct {
	*crew
	log       bytes.Buffer
	limit     seckill.OrderNo // promised to a buyer who has as many as is allowed
	duplicate seckill.OrderNo // promised under a key that has an order
}

func newSoldTwice(t *testing.T) *soldTwice {
	t.Helper()
	s := &soldTwice{crew: newCrew(t)}
	p := s.Open(t, 1, 10)
	stored := []seckill.Claim{s.Claim(1, "ann"), s.Claim(1, "bob")}
	stored[1].Key = "k"
	_, err := s.Store.Confirm(t.Context(), store.ConfirmRequest{
		ProductID: 1, ExpireAfter: s.options().ExpireAfter, Items: store.Items(&seckill.Entry{
			ProductID: 1, Group: p.Group, Epoch: p.Epoch, At: s.Time.Now(),
			PriceCents: p.PriceCents, Currency: p.Currency, Name: p.Name, Limit: p.PerUserLimit, Claims: stored,
		}),
	})
	rig.Must(t, err)
	again := []seckill.Claim{s.Claim(1, "ann"), s.Claim(1, "bob"), s.Claim(1, "cat")}
	again[1].Key = "k"
	s.Reserve(t, p, again...)
	s.limit, s.duplicate = again[0].OrderNo, again[1].OrderNo
	s.again()
	return s
}

// again makes the worker anew, with the log of the one before.
func (s *soldTwice) again() {
	s.enlist(func(o *worker.Options) { o.Logger = slog.New(slog.NewTextHandler(&s.log, nil)) })
}

// told checks, when the worker has stopped, that both were listed once, and the
// one whose buyer is worse off was alerted once.
func (s *soldTwice) told(t *testing.T) {
	t.Helper()
	for no, reason := range map[seckill.OrderNo]string{s.limit: seckill.ReasonLimit, s.duplicate: seckill.ReasonDuplicate} {
		o, err := s.Store.Order(t.Context(), no)
		rig.Must(t, err)
		if o.Status != seckill.OrderFailed || o.Reason != reason {
			t.Errorf("order %s is %s %q, want failed %q", no, o.Status, o.Reason, reason)
		}
		if n := strings.Count(s.log.String(), no.String()+" "+reason); n != 1 {
			t.Errorf("that order %s has failed (%s) is in the log %d times\n%s", no, reason, n, s.log.String())
		}
	}
	if got := s.alerted(); !slices.Equal(got, []alert.Kind{alert.NotKept}) {
		t.Fatalf("alerts are %v", got)
	}
	if got := s.causes[0].Error(); !strings.Contains(got, s.limit.String()) || !strings.HasPrefix(got, "1 promised order") {
		t.Errorf("the alert says %q, and not that %s has failed", got, s.limit)
	}
	storetest.CheckPromises(t, s.Store, 1)
}

func TestAPromiseThatFailsInTheStoreIsListedAndAlerted(t *testing.T) {
	s := newSoldTwice(t)
	s.start(t)
	s.drained(t)
	s.stop()
	s.told(t)
}

// The worker dies between its commit and its acknowledgement, and another is
// given the same entry.
func TestAPromiseThatFailedIsNotListedAgainWhenItsEntryComesAgain(t *testing.T) {
	s := newSoldTwice(t)
	s.queue.set(&s.queue.failAck, 1<<20)
	s.start(t)
	rig.Until(t, "the order has failed", func() bool { return s.Status(t, s.limit) == seckill.OrderFailed })
	s.stop()
	s.queue.set(&s.queue.failAck, 0)
	if s.Depth(t, 1) == 0 {
		t.Fatal("the entry was acknowledged")
	}
	s.again()
	s.start(t)
	s.drained(t)
	s.stop()
	s.told(t)
}

// The queue does not take the acknowledgement, so that the batch is tried again,
// and the commit of that is not heard of.
func TestAPromiseThatFailedIsListedOnceThoughItsBatchIsTriedAgain(t *testing.T) {
	s := newSoldTwice(t)
	s.queue.set(&s.queue.failAck, 1<<20)
	s.start(t)
	rig.Until(t, "the order has failed", func() bool { return s.Status(t, s.limit) == seckill.OrderFailed })
	s.Store.FailAfter("Confirm", 1)
	s.tried(t)
	s.queue.set(&s.queue.failAck, 0)
	s.drained(t)
	s.stop()
	s.told(t)
}
