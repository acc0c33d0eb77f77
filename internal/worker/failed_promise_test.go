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

// soldTwice has a ledger that was set back, and no process has noticed. The
// store has orders that the ledger does not know, and the ledger has promised
// others to the same buyers.
type soldTwice struct {
	*fixture
	log       bytes.Buffer
	limit     seckill.OrderNo // promised to a buyer who already has the limit
	duplicate seckill.OrderNo // promised under a key that has an order
}

func newSoldTwice(t *testing.T) *soldTwice {
	t.Helper()
	s := &soldTwice{fixture: newFixture(t)}
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
	s.restart()
	return s
}

// restart makes a new worker with the same log.
func (s *soldTwice) restart() {
	s.newWorker(func(o *worker.Options) { o.Logger = slog.New(slog.NewTextHandler(&s.log, nil)) })
}

// startWithFailingAcks starts the worker and waits until its first
// acknowledgement has failed. By then Confirm has returned, and the worker has
// logged the failed orders. The order's status would be visible earlier: between
// the commit and the return of Confirm.
func (s *soldTwice) startWithFailingAcks(t *testing.T) {
	t.Helper()
	const acks = 1 << 20
	s.queue.set(&s.queue.failAck, acks)
	s.start(t)
	rig.Until(t, "an acknowledgement has failed", func() bool { return s.queue.left(&s.queue.failAck) < acks })
}

// checkReported checks, after the worker has stopped, that both failures were
// logged once and that only the limit failure was alerted, once.
func (s *soldTwice) checkReported(t *testing.T) {
	t.Helper()
	for no, reason := range map[seckill.OrderNo]string{s.limit: seckill.ReasonLimit, s.duplicate: seckill.ReasonDuplicate} {
		o, err := s.Store.Order(t.Context(), no)
		rig.Must(t, err)
		if o.Status != seckill.OrderFailed || o.Reason != reason {
			t.Errorf("order %s is %s %q, want failed %q", no, o.Status, o.Reason, reason)
		}
		if n := strings.Count(s.log.String(), no.String()+" "+reason); n != 1 {
			t.Errorf("the failure of order %s (%s) is in the log %d times\n%s", no, reason, n, s.log.String())
		}
	}
	if got := s.alerted(); !slices.Equal(got, []alert.Kind{alert.NotKept}) {
		t.Fatalf("alerts are %v", got)
	}
	if got := s.causes[0].Error(); !strings.Contains(got, s.limit.String()) || !strings.HasPrefix(got, "1 promised order") {
		t.Errorf("the alert is %q, want the failure of %s", got, s.limit)
	}
	storetest.CheckPromises(t, s.Store, 1)
}

func TestFailedPromise_IsLoggedAndAlerted(t *testing.T) {
	s := newSoldTwice(t)
	s.start(t)
	s.waitDrained(t)
	s.stop()
	s.checkReported(t)
}

// The worker dies between its commit and its acknowledgement, and another one
// receives the same entry.
func TestFailedPromise_LoggedOnceAlthoughItsEntryIsRedelivered(t *testing.T) {
	s := newSoldTwice(t)
	s.startWithFailingAcks(t)
	s.stop()
	s.queue.set(&s.queue.failAck, 0)
	if s.Depth(t, 1) == 0 {
		t.Fatal("the entry was acknowledged")
	}
	s.restart()
	s.start(t)
	s.waitDrained(t)
	s.stop()
	s.checkReported(t)
}

// The queue does not take the acknowledgement, so the batch is tried again, and
// the reply to that commit is lost.
func TestFailedPromise_LoggedOnceAlthoughItsBatchIsRetried(t *testing.T) {
	s := newSoldTwice(t)
	s.startWithFailingAcks(t)
	s.Store.FailAfter("Confirm", 1)
	s.waitRetried(t)
	s.queue.set(&s.queue.failAck, 0)
	s.waitDrained(t)
	s.stop()
	s.checkReported(t)
}
