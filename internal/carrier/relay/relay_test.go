package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/auth"
	"seckill/internal/background"
	"seckill/internal/carrier"
	"seckill/internal/carrier/relay"
	"seckill/internal/queue"
	"seckill/test/rig"
)

func TestLine_OrdersTravelByTheBroker(t *testing.T) {
	s := newShop(t)
	s.timing.RepublishAfter = time.Minute // a copy on a slow machine would be a stray
	p := s.Open(t, 1, 100)
	s.relay(t)
	s.work(t)
	nos := s.Buy(t, p, buyers("b", 40)...)
	s.drained(t)
	s.all(t, seckill.OrderPending, nos)
	if len(s.broker.Sent()) == 0 || s.count(&s.strays) > 0 || s.count(&s.bypasses) > 0 {
		t.Errorf("%d messages, %d strays, %d bypasses", len(s.broker.Sent()), s.strays, s.bypasses)
	}
}

func TestRelay_RepublishesLostMessages(t *testing.T) {
	s := newShop(t)
	s.timing.UnwellAfter = time.Minute
	p := s.Open(t, 1, 100)
	s.relay(t)
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "all are published", func() bool { return s.broker.Unsettled() > 0 })
	s.broker.Wipe()
	s.work(t)
	s.drained(t)
	s.all(t, seckill.OrderPending, nos)
}

func TestRelay_RepublishesNothingWhileTheStoreIsAway(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 100)
	s.store.set(errors.New("away"))
	s.relay(t)
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "all are published", func() bool { return s.broker.Unsettled() > 0 })
	began := time.Now()
	rig.Until(t, "the relay would have published again", func() bool { return time.Since(began) > 5*brisk.RepublishAfter })
	if n := s.count(&s.again); n > 0 || s.line.Bypassed() {
		t.Errorf("%d messages were published again, bypassed is %v", n, s.line.Bypassed())
	}
	s.store.set(nil)
	s.work(t)
	s.drained(t)
	s.all(t, seckill.OrderPending, nos)
}

func TestRelay_CopiesAreSpacedExponentially(t *testing.T) {
	s := newShop(t)
	s.timing.UnwellAfter = time.Minute
	p := s.Open(t, 1, 100)
	s.relay(t)
	s.Buy(t, p, "b")
	s.broker.Swallow(true)
	began := time.Now()
	rig.Until(t, "two seconds pass", func() bool { return time.Since(began) > 2*time.Second })
	// After 0.2, 0.6 and 1.4 s; the next one is after 3.0 s.
	if n := s.count(&s.again); n < 1 || n > 3 {
		t.Errorf("%d copies in 2 s", n)
	}
}

func TestLine_RefusingBrokerIsBypassedUntilItIsWell(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 10_000)
	s.relay(t)
	s.broker.Fail(errors.New("refused"))
	s.work(t)
	nos := s.Buy(t, p, buyers("a", 10)...)
	rig.Until(t, "the outbox is empty", func() bool { return s.Depth(t, 0) == 0 })
	s.all(t, seckill.OrderPending, nos)
	if !s.line.Bypassed() {
		t.Error("the broker is not bypassed")
	}
	s.broker.Fail(nil)
	rig.Until(t, "the bypass ends", func() bool { return !s.line.Bypassed() })
	before, bought := len(s.broker.Sent()), 0
	rig.Until(t, "orders go by the broker again", func() bool {
		bought++ // a worker may still read the first from the outbox
		nos = append(nos, s.Buy(t, p, fmt.Sprintf("b-%d", bought))...)
		return len(s.broker.Sent()) > before
	})
	s.drained(t)
	s.all(t, seckill.OrderPending, nos)
}

// The relay finds a dead broker before the first order of the next sale.
func TestLine_BrokerThatDiesWhileIdleIsBypassed(t *testing.T) {
	s := newShop(t)
	s.timing.PingEvery = 50 * time.Millisecond
	p := s.Open(t, 1, 100)
	s.relay(t)
	s.work(t)
	s.broker.Fail(errors.New("dead"))
	rig.Until(t, "the broker is bypassed", s.line.Bypassed)
	if s.count(&s.bypasses) == 0 {
		t.Error("the meter does not show the bypass")
	}
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "the outbox is empty", func() bool { return s.Depth(t, 0) == 0 })
	s.all(t, seckill.OrderPending, nos)
	s.broker.Fail(nil)
	rig.Until(t, "the bypass ends", func() bool { return !s.line.Bypassed() })
}

func TestLine_BrokerAwayAtStartIsBypassed(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 100)
	s.broker.Fail(errors.New("away"))
	s.relay(t)
	s.work(t)
	rig.Until(t, "the meter shows the bypass", func() bool { return s.count(&s.bypasses) > 0 })
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "the outbox is empty", func() bool { return s.Depth(t, 0) == 0 })
	s.all(t, seckill.OrderPending, nos)
	s.broker.Fail(nil)
	rig.Until(t, "the broker is open", func() bool { return !s.line.Bypassed() })
}

func TestLine_BrokerThatDeliversNothingIsBypassed(t *testing.T) {
	s := newShop(t)
	s.timing.UnwellAfter = 300 * time.Millisecond
	p := s.Open(t, 1, 100)
	s.broker.Swallow(true)
	s.relay(t)
	s.work(t)
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "the outbox is empty", func() bool { return s.Depth(t, 0) == 0 })
	s.all(t, seckill.OrderPending, nos)
	if s.count(&s.bypasses) == 0 {
		t.Error("the broker was not bypassed")
	}
	// The copies come late and change nothing.
	s.broker.Swallow(false)
	s.drained(t)
	if got := s.Stored(t, 1).Stock; got != 90 {
		t.Errorf("stock is %d, want 90", got)
	}
}

func TestLine_ReplayedMessagesChangeNothing(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 100)
	s.relay(t)
	s.work(t)
	nos := s.Buy(t, p, buyers("b", 10)...)
	s.drained(t)
	for _, m := range s.broker.Sent() {
		s.broker.Inject(m)
		s.broker.Inject(m)
	}
	s.drained(t)
	s.all(t, seckill.OrderPending, nos)
	if s.Stored(t, 1).Stock != 90 || s.count(&s.strays) == 0 {
		t.Errorf("stock is %d, %d strays", s.Stored(t, 1).Stock, s.strays)
	}
	witness, err := s.Store.Witness(t.Context())
	rig.Must(t, err)
	lost, err := s.Queue.Lost(t.Context(), witness)
	if err != nil || len(lost) > 0 {
		t.Errorf("the witness is lost: %v %v", lost, err)
	}
}

func TestLine_CopyOfALostEntryIsAdopted(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 100)
	stop := s.relay(t)
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "all are published", func() bool { return s.broker.Unsettled() > 0 })
	stop()
	s.LoseJournal(t)
	_, err := s.Lifecycle.Recover(t.Context(), 1, rig.Operator)
	rig.Must(t, err)
	p = s.Stored(t, 1)
	s.relay(t)
	s.work(t)
	rig.Until(t, "the orders are there", func() bool { return s.Status(t, nos[9]) == seckill.OrderPending })
	s.drained(t)
	s.all(t, seckill.OrderPending, nos)
	if f := s.Figures(t, p); f.Orders != 10 {
		t.Errorf("the ledger holds %d of 10 orders", f.Orders)
	}
}

func TestLine_RejectedMessagesAreSettledAndCounted(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 100)
	s.relay(t)
	s.work(t)
	s.Buy(t, p, "b")
	s.drained(t)
	genuine := s.broker.Sent()[0]

	forged := genuine
	forged.Body = bytes.Replace(genuine.Body, []byte(`"quantity":1`), []byte(`"quantity":9`), 1)
	unsigned := genuine
	unsigned.Signature = ""
	ring, err := auth.NewRing([]byte("0123456789abcdef"))
	rig.Must(t, err)
	elsewhere := &carrier.Codec{Store: "store-2", Ring: ring}
	entries, err := s.codec.Decode(&genuine)
	rig.Must(t, err)
	foreign, err := elsewhere.Encode(entries)
	rig.Must(t, err)
	for _, m := range []carrier.Message{forged, unsigned, foreign, {Key: "x", Body: []byte("{"), Signature: "v1,AA=="}} {
		s.broker.Inject(m)
	}
	s.drained(t)
	rig.Until(t, "all are counted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.rejected["forged"] == 3 && s.rejected["foreign"] == 1
	})
	if got := s.Stored(t, 1).Stock; got != 99 {
		t.Errorf("stock is %d, want 99", got)
	}
}

func TestLine_RejectedMessagesDoNotFillTheLog(t *testing.T) {
	s := newShop(t)
	const n = 2000
	for range n {
		s.broker.Inject(carrier.Message{Key: "1-0", Body: []byte("{}"), Signature: "v1,AA=="})
	}
	began := time.Now()
	s.relay(t)
	s.drained(t)
	rig.Until(t, "all are counted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.rejected["forged"] == n
	})
	if lines, took := s.log.Count("message rejected"), time.Since(began); lines == 0 || lines > 1+int(took/alert.LogEvery) {
		t.Errorf("%d lines in %s", lines, took)
	}
}

func TestRelay_TooLargeEntryGoesToAWorkerDirectly(t *testing.T) {
	s := newShop(t)
	s.broker.Limit(2000)
	p := s.Open(t, 1, 100)
	s.relay(t)
	s.work(t)
	claims := make([]seckill.Claim, 20)
	nos := make([]seckill.OrderNo, len(claims))
	for i := range claims {
		claims[i] = s.Claim(1, fmt.Sprintf("large-%d", i))
		nos[i] = claims[i].OrderNo
	}
	s.Reserve(t, p, claims...)
	small := s.Buy(t, p, "small")
	s.drained(t)
	s.all(t, seckill.OrderPending, slices.Concat(nos, small))
	if s.line.Bypassed() || len(s.broker.Sent()) == 0 {
		t.Errorf("bypassed is %v, %d messages", s.line.Bypassed(), len(s.broker.Sent()))
	}
}

func TestLine_StopHandsEntriesBackToTheOutbox(t *testing.T) {
	s := newShop(t)
	p := s.Open(t, 1, 100)
	stop := s.relay(t)
	nos := s.Buy(t, p, buyers("b", 10)...)
	rig.Until(t, "all are published", func() bool { return s.broker.Unsettled() > 0 })
	stop()
	s.line = nil // as with queue.kind outbox
	s.work(t)
	rig.Until(t, "the outbox is empty", func() bool { return s.Depth(t, 0) == 0 })
	s.all(t, seckill.OrderPending, nos)
}

// A broker that does not answer has only copies. A stop waits one second for
// it, and hands the entries back to the outbox.
func TestLine_StopDoesNotWaitLongForAFrozenBroker(t *testing.T) {
	s := newShop(t)
	s.timing.UnwellAfter = time.Minute
	p := s.Open(t, 1, 100)
	stop := s.relay(t)
	settling, holding := s.consumer(t, "settling"), s.consumer(t, "holding")
	receive := func(c queue.Consumer, buyer string) []queue.Delivery {
		s.Buy(t, p, buyer)
		got, err := c.Receive(t.Context(), 1)
		rig.Must(t, err)
		return got
	}
	mine := receive(settling, "b")
	held := receive(holding, "c")
	s.broker.Freeze()
	began := time.Now()
	settled := make(chan error, 1)
	go func() { settled <- settling.Ack(context.Background(), mine[:1], queue.ID{}) }()
	rig.Until(t, "the entry is acknowledged in the outbox", func() bool { return s.Depth(t, 0) == 1 })
	stop()
	rig.Must(t, <-settled)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = holding.Close(ctx) // the broker accepts nothing back
	if took := time.Since(began); took > background.GraceTime+2*time.Second {
		t.Errorf("the stop took %s", took)
	}
	direct, err := s.Queue.Consumer(t.Context(), "direct")
	rig.Must(t, err)
	got, err := direct.Receive(t.Context(), 1)
	rig.Must(t, err)
	if len(got) != 1 || got[0].ID != held[0].ID {
		t.Errorf("the outbox gives %v, want %v", got, held)
	}
}

func TestConsumer_CopyInHandIsNotDeliveredTwice(t *testing.T) {
	s := newShop(t)
	s.timing.UnwellAfter = time.Minute
	p := s.Open(t, 1, 100)
	s.relay(t)
	c, err := s.line.Consumer(t.Context(), "by-hand")
	rig.Must(t, err)
	s.Buy(t, p, "b")
	first, err := c.Receive(t.Context(), 10)
	rig.Must(t, err)
	again := s.Buy(t, p, "c")
	s.broker.Inject(s.broker.Sent()[0])
	seen := 0
	for seen == 0 {
		got, err := c.Receive(t.Context(), 10)
		rig.Must(t, err)
		for _, d := range got {
			if d.ID == first[0].ID {
				t.Fatal("an entry in hand came again")
			}
			if d.Entry.Claims[0].OrderNo == again[0] {
				seen++
			}
		}
	}
	rig.Must(t, c.Close(t.Context()))
}

var _ relay.Meter = (*shop)(nil)
