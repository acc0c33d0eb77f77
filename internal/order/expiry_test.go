package order_test

import (
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/carrier"
	"seckill/internal/order"
	"seckill/internal/payment"
	"seckill/internal/store/storetest"
	"seckill/test/rig"
)

func TestScheduler_MessageExpiresUnpaidOrdersWhenDue(t *testing.T) {
	s := newShop(t)
	s.run(t)
	nos, payBefore := s.confirm(t, 5, 300*time.Millisecond)
	paid, err := s.Store.Order(t.Context(), nos[0])
	rig.Must(t, err)
	_, err = s.Store.RecordPayment(t.Context(), payment.Notice{
		Provider: "sandbox", TradeNo: "1", OrderNo: nos[0].String(), AmountCents: paid.AmountCents(), Currency: paid.Currency, PaidAt: time.Now(),
	})
	rig.Must(t, err)
	s.scheduler.Schedule(s.product.ID, nos, payBefore)
	rig.Until(t, "the message is settled", func() bool { return s.count(order.Settled) == 1 })
	if n := s.cancelled(t, nos[1:]); n != 4 || s.seen() != 4 {
		t.Errorf("%d orders expired, OnExpired got %d, want 4", n, s.seen())
	}
	if got := s.Status(t, nos[0]); got != seckill.OrderPaid {
		t.Errorf("the paid order is %s", got)
	}
	if s.broker.Unsettled() > 0 || len(s.broker.Sent()) != 1 {
		t.Errorf("%d messages unsettled, %d sent", s.broker.Unsettled(), len(s.broker.Sent()))
	}
}

func TestScheduler_LargeBatchIsSplitIntoMessages(t *testing.T) {
	s := newShop(t)
	s.run(t)
	nos, payBefore := s.confirm(t, 1200, 200*time.Millisecond)
	s.scheduler.Schedule(s.product.ID, nos, payBefore)
	rig.Until(t, "the messages are settled", func() bool { return s.count(order.Settled) == 3 })
	if n := s.cancelled(t, nos); n != len(nos) {
		t.Errorf("%d of %d orders expired", n, len(nos))
	}
}

func TestReceiver_EarlyMessageWaitsForItsTime(t *testing.T) {
	s := newShop(t)
	s.broker.Early(5 * time.Second)
	s.run(t)
	nos, payBefore := s.confirm(t, 3, time.Second)
	s.scheduler.Schedule(s.product.ID, nos, payBefore)
	// A later message must not delay one that is due.
	later, laterBefore := s.confirm(t, 1, time.Minute)
	s.scheduler.Schedule(s.product.ID, later, laterBefore)
	rig.Until(t, "the orders expire", func() bool { return s.seen() == len(nos) })
	if early := time.Until(payBefore); early > 0 {
		t.Errorf("they expired %s early", early)
	}
	if n := s.cancelled(t, later); n != 0 {
		t.Error("the later order expired")
	}
}

func TestReceiver_MessageFarTooEarlyIsGivenBack(t *testing.T) {
	s := newShop(t)
	s.broker.Early(time.Hour)
	s.run(t)
	nos, payBefore := s.confirm(t, 1, 10*time.Minute)
	s.scheduler.Schedule(s.product.ID, nos, payBefore)
	rig.Until(t, "it is given back more than once", func() bool { return s.count(order.Again) > 1 })
	if s.cancelled(t, nos) != 0 || s.broker.Unsettled() != 1 {
		t.Error("the order expired, or the message is gone")
	}
}

// The clock of the store decides, and no order is dropped if it is behind.
func TestReceiver_OrdersNotDueByTheStoreClockComeAgain(t *testing.T) {
	s := newShop(t)
	s.run(t)
	nos, payBefore := s.confirm(t, 2, time.Minute)
	s.scheduler.Schedule(s.product.ID, nos, payBefore.Add(-time.Minute).Add(100*time.Millisecond))
	rig.Until(t, "the message is given back", func() bool { return s.count(order.Again) > 1 })
	if n := s.cancelled(t, nos); n != 0 {
		t.Fatalf("%d orders expired before their time", n)
	}
	s.Time.Advance(2 * time.Minute)
	rig.Until(t, "the orders expire", func() bool { return s.seen() == len(nos) })
	rig.Until(t, "the message is settled", func() bool { return s.broker.Unsettled() == 0 })
}

func TestReceiver_RetriesWithBackoffWhileTheStoreIsAway(t *testing.T) {
	s := newShop(t)
	nos, payBefore := s.confirm(t, 2, 100*time.Millisecond)
	s.Store.FailBefore("ExpireOrders", storetest.Always)
	s.run(t)
	s.scheduler.Schedule(s.product.ID, nos, payBefore)
	rig.Until(t, "the store was asked", func() bool { return s.Store.Calls("ExpireOrders") > 0 })
	began := time.Now()
	rig.Until(t, "two seconds pass", func() bool { return time.Since(began) > 2*time.Second })
	// Each of two receivers tries after 0.25, 0.75 and 1.75 s.
	if n := s.Store.Calls("ExpireOrders"); n > 10 {
		t.Errorf("the store was asked %d times in two seconds", n)
	}
	s.Store.Heal()
	rig.Until(t, "the orders expire", func() bool { return s.cancelled(t, nos) == len(nos) })
	rig.Until(t, "the message is settled", func() bool { return s.broker.Unsettled() == 0 })
}

// The store has expired the orders, and the receiver misses the reply.
func TestReceiver_LostReplyExpiresNothingTwice(t *testing.T) {
	s := newShop(t)
	nos, payBefore := s.confirm(t, 2, 100*time.Millisecond)
	s.Store.FailAfter("ExpireOrders", 1)
	s.run(t)
	s.scheduler.Schedule(s.product.ID, nos, payBefore)
	rig.Until(t, "the message is settled", func() bool { return s.count(order.Settled) == 1 })
	if n := s.cancelled(t, nos); n != len(nos) {
		t.Errorf("%d of %d orders expired", n, len(nos))
	}
	storetest.CheckPromises(t, s.Store, s.product.ID)
}

func TestReceiver_BadMessagesAreSettledAndCounted(t *testing.T) {
	s := newShop(t)
	nos, _ := s.confirm(t, 1, time.Hour)
	e := carrier.Expiry{ProductID: 1, Due: time.Now(), Orders: nos}
	foreign, err := newCodec(t, "store-2").EncodeExpiry(&e)
	rig.Must(t, err)
	forged, err := s.codec.EncodeExpiry(&e)
	rig.Must(t, err)
	forged.Signature = "v1,AAAA"
	s.broker.Inject(foreign)
	s.broker.Inject(forged)
	s.broker.Inject(s.codec.Seal("1", []byte(`{"version":1,"store":"store-1","entries":[]}`)))
	s.run(t)
	rig.Until(t, "all are settled", func() bool { return s.broker.Unsettled() == 0 })
	for _, why := range []order.ExpiryResult{order.Forged, order.Foreign, order.Poison} {
		if n := s.count(why); n != 1 {
			t.Errorf("%d messages are %s", n, why)
		}
	}
}

func TestReceiver_RejectedMessagesDoNotFillTheLog(t *testing.T) {
	s := newShop(t)
	const n = 500
	for range n {
		s.broker.Inject(carrier.Message{Key: "1", Body: []byte("{}"), Signature: "v1,AA=="})
	}
	began := time.Now()
	s.run(t)
	rig.Until(t, "all are counted", func() bool { return s.count(order.Forged) == n })
	if lines, took := s.log.Count("message rejected"), time.Since(began); lines == 0 || lines > 1+int(took/alert.LogEvery) {
		t.Errorf("%d lines in %s", lines, took)
	}
}

func TestScheduler_BrokerAwayAtStartBlocksNoCaller(t *testing.T) {
	s := newShop(t)
	s.broker.Fail(errors.New("away"))
	s.run(t)
	nos, payBefore := s.confirm(t, 1, 5*time.Second)
	began := time.Now()
	for range 2000 { // more than the queue takes
		s.scheduler.Schedule(s.product.ID, nos, payBefore)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("2000 calls took %s", took)
	}
	if n := s.count(order.Dropped); n != 2000-1024 {
		t.Errorf("%d messages were dropped", n)
	}
	s.broker.Fail(nil)
	rig.Until(t, "the rest is published", func() bool { return s.count(order.Published) == 1024 })
	rig.Until(t, "the order expires", func() bool { return s.cancelled(t, nos) == 1 })
}

func TestScheduler_DropsMessagesThatTheBrokerDoesNotTake(t *testing.T) {
	s := newShop(t)
	s.run(t)
	nos, _ := s.confirm(t, 1, time.Hour)
	s.scheduler.Schedule(s.product.ID, nos, time.Now().Add(carrier.MaxDelay+time.Hour))
	rig.Until(t, "it is counted as too long", func() bool { return s.count(order.TooLong) == 1 })
	s.broker.Fail(errors.New("refused"))
	s.scheduler.Schedule(s.product.ID, nos, time.Now().Add(time.Minute))
	rig.Until(t, "it is dropped", func() bool { return s.count(order.Dropped) == 1 })
	s.broker.Fail(nil)
	s.scheduler.Schedule(s.product.ID, nos, time.Now().Add(time.Minute))
	rig.Until(t, "the broker takes messages again", func() bool { return s.count(order.Published) == 1 })
}

func TestScheduler_StopPublishesWaitingMessagesAndGivesBackTheRest(t *testing.T) {
	s := newShop(t)
	s.broker.Early(5 * time.Second)
	stop := s.run(t)
	nos, payBefore := s.confirm(t, 1, 4*time.Second)
	for range 50 {
		s.scheduler.Schedule(s.product.ID, nos, payBefore)
	}
	rig.Until(t, "the broker is open", func() bool { return s.count(order.Published) > 0 })
	stop()
	if sent, left := len(s.broker.Sent()), s.broker.Unsettled(); sent != 50 || left != 50 {
		t.Errorf("%d messages were published, %d are left", sent, left)
	}
}

// The store has the orders, and its scan expires them.
func TestScheduler_StopDoesNotWaitLongForAFrozenBroker(t *testing.T) {
	s := newShop(t)
	stop := s.run(t)
	due, dueBefore := s.confirm(t, 1, 500*time.Millisecond)
	s.scheduler.Schedule(s.product.ID, due, dueBefore)
	rig.Until(t, "the message is published", func() bool { return s.count(order.Published) == 1 })
	s.broker.Freeze()
	rig.Until(t, "the order is expired, and the broker does not settle its message", func() bool { return s.count(order.Settled) == 1 })
	later, laterBefore := s.confirm(t, 1, time.Minute)
	for range 50 {
		s.scheduler.Schedule(s.product.ID, later, laterBefore)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
