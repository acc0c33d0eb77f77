package pulsarclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func message(n int) []Outgoing {
	return []Outgoing{{Key: fmt.Sprint(n), Body: []byte("body")}}
}

func TestTopic_ProducerIsReopened(t *testing.T) {
	const errors1, closes, hangs = 1, 2, 3
	var turn atomic.Int64
	b := newFake(t, func(c *fakeConn, s command) bool {
		if s.kind != kindSend {
			return false
		}
		switch turn.Add(1) {
		case errors1:
			c.say(kindSendError, fields(nil).number(1, s.number(1)).number(2, s.number(2)).number(3, 2).text(4, "no disk"))
		case closes:
			c.say(kindCloseProducer, fields(nil).number(1, s.number(1)).number(2, 0))
		case hangs:
			_ = c.Close()
		default:
			return false
		}
		return true
	})
	topic := openTestTopic(t, newTestClient(t, Options{Addresses: []string{b.address}}))
	for turn := range hangs {
		if err := topic.Write(within(t), message(turn)); err == nil || IsSetup(err) {
			t.Errorf("write %d: %v", turn, err)
		}
	}
	if err := topic.Write(within(t), message(9)); err != nil {
		t.Errorf("write after all that: %v", err)
	}
	if !topic.room.TryAcquire(unsentBytes) {
		t.Error("messages that ended still take room")
	}
}

func TestTopic_WriteEndsWithItsContext(t *testing.T) {
	b := newFake(t, func(_ *fakeConn, s command) bool { return s.kind == kindSend })
	topic := openTestTopic(t, newTestClient(t, Options{Addresses: []string{b.address}}))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		b.await(kindSend, 1)
		cancel()
	}()
	if err := topic.Write(ctx, message(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
}

// box is an inbox with a bound.
type box struct {
	mu    sync.Mutex
	most  int
	got   []*Message
	added chan struct{}

	resets atomic.Int64
}

func newBox(most int) *box { return &box{most: most, added: make(chan struct{}, 1)} }

func (b *box) Take(m *Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) >= b.most {
		return false
	}
	b.got = append(b.got, m)
	select {
	case b.added <- struct{}{}:
	default:
	}
	return true
}

func (b *box) Reset() { b.resets.Add(1) }

func (b *box) grow(by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most += by
}

func (b *box) HasRoom() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got) < b.most
}

func (b *box) await(t *testing.T, n int) []*Message {
	t.Helper()
	for late := within(t).Done(); ; {
		b.mu.Lock()
		got := b.got
		b.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-b.added:
		case <-late:
			t.Fatalf("%d of %d messages came", len(got), n)
		}
	}
}

// subscribed is a subscription to a fake broker that delivers payloads with the
// first permits of each consumer.
func subscribed(t *testing.T, inbox Inbox, payloads func(nth int) [][]byte) (*fakeBroker, *Subscription) {
	t.Helper()
	var lives atomic.Int64
	var begun sync.Map
	b := newFake(t, func(c *fakeConn, s command) bool {
		if s.kind == kindFlow {
			if _, again := begun.LoadOrStore(s.number(1), true); !again {
				for i, payload := range payloads(int(lives.Add(1))) {
					c.deliver(s.number(1), MessageID{Ledger: 1, Entry: uint64(i)}, payload)
				}
			}
		}
		return false
	})
	topic := openTestTopic(t, newTestClient(t, Options{Addresses: []string{b.address}}))
	s := topic.Subscribe(SubscriptionOptions{Name: "group", Inbox: inbox})
	t.Cleanup(func() {
		if err := s.Leave(within(t)); err != nil {
			t.Errorf("leave: %v", err)
		}
	})
	return b, s
}

// The broker has used 200 permits for the batch, and gets them again.
func TestSubscription_ReturnsThePermitsOfABatch(t *testing.T) {
	inbox := newBox(100)
	batch := packed(fields(nil).text(1, "p").number(11, 200), "body")
	b, _ := subscribed(t, inbox, func(int) [][]byte { return [][]byte{batch} })
	if first := b.await(kindFlow, 1).number(2); first != maxPermits {
		t.Errorf("the first permits are %d", first)
	}
	if second := b.await(kindFlow, 2).number(2); second != 200 {
		t.Errorf("%d permits came back", second)
	}
	if got := inbox.await(t, 1)[0]; got.Poison != "batch" || got.Body != nil {
		t.Errorf("received %+v", got)
	}
}

// A number that makes the permits unknown ends a consumer, not the
// subscription.
func TestSubscription_ReopensWhenPermitsAreUnknown(t *testing.T) {
	inbox := newBox(100)
	minus := int32(-5)
	odd := packed(fields(nil).text(1, "p").number(11, uint64(minus)), "body")
	b, s := subscribed(t, inbox, func(nth int) [][]byte {
		if nth == 1 {
			return [][]byte{odd}
		}
		return [][]byte{sentBy(t, &Outgoing{Key: "k", Body: []byte("honest")})}
	})
	got := inbox.await(t, 2)
	if got[0].Poison != "batch" || string(got[1].Body) != "honest" {
		t.Errorf("received %q, then %q", got[0].Poison, got[1].Body)
	}
	b.await(kindAck, 1)
	b.await(kindCloseConsumer, 1)
	if err := s.Acknowledge(within(t), []MessageID{got[1].ID}); err != nil {
		t.Errorf("acknowledge: %v", err)
	}
}

// If the inbox has no room for a message, another consumer gets it again, and
// gets permits when there is room.
func TestSubscription_ReopensWhenTheInboxIsFull(t *testing.T) {
	inbox := newBox(1)
	payload := sentBy(t, &Outgoing{Key: "k", Body: []byte("b")})
	b, s := subscribed(t, inbox, func(int) [][]byte { return [][]byte{payload, payload} })
	b.await(kindCloseConsumer, 1)
	second := b.await(kindSubscribe, 2).number(4)
	inbox.grow(2)
	s.Refill()
	if got := b.await(kindFlow, 2).number(1); got != second {
		t.Errorf("consumer %d got permits, want %d", got, second)
	}
	inbox.await(t, 3)
}

// If a topic gets partitions, the subscription receives from each of them, and
// the inbox forgets the earlier messages.
func TestSubscription_FollowsNewPartitions(t *testing.T) {
	var partitions atomic.Int64
	b := newFake(t, func(c *fakeConn, s command) bool {
		if s.kind != kindPartitions {
			return false
		}
		c.say(kindPartitionsReply, fields(nil).number(1, uint64(partitions.Load())).number(2, s.number(2)))
		return true
	})
	topic := openTestTopic(t, newTestClient(t, Options{Addresses: []string{b.address}}))
	inbox := newBox(1)
	s := topic.Subscribe(SubscriptionOptions{Name: "group", Inbox: inbox})
	b.await(kindSubscribe, 1)
	partitions.Store(2)
	b.hangUp() // the next consumer finds the partitions
	b.await(kindSubscribe, 3)
	if err := s.Leave(within(t)); err != nil {
		t.Errorf("leave: %v", err)
	}
	if inbox.resets.Load() != 2 {
		t.Errorf("the inbox was reset %d times", inbox.resets.Load())
	}
}

func TestSubscription_SurvivesALostConnection(t *testing.T) {
	inbox := newBox(100)
	payload := sentBy(t, &Outgoing{Key: "k", Body: []byte("b")})
	b, _ := subscribed(t, inbox, func(int) [][]byte { return [][]byte{payload} })
	inbox.await(t, 1)
	b.hangUp()
	inbox.await(t, 2)
}
