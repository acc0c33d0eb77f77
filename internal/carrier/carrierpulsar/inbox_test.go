package carrierpulsar

import (
	"testing"
	"testing/synctest"

	"seckill/internal/carrier"
	"seckill/internal/client/pulsarclient"
)

func at(entry uint64) pulsarclient.MessageID { return pulsarclient.MessageID{Ledger: 1, Entry: entry} }

func TestInbox_HoldsBoundedMemory(t *testing.T) {
	const size = 4 << 20
	b := newInbox()
	taken := uint64(0)
	for b.Take(&pulsarclient.Message{ID: at(taken), Body: []byte("b"), Size: size}) {
		if taken++; taken > 1000 {
			t.Fatal("there is no bound")
		}
		if b.HasRoom() != (taken*size < heldBytes) {
			t.Fatalf("room is %v with %d messages", b.HasRoom(), taken)
		}
	}
	if taken != (heldBytes+overBytes)/size {
		t.Errorf("%d messages were taken", taken)
	}
	got, _, _ := b.take(1000)
	b.settle(b.open(got))
	if b.bytes != 0 || len(b.held) != 0 || !b.HasRoom() {
		t.Errorf("%d bytes of %d messages are held after all were settled", b.bytes, len(b.held))
	}
}

func TestInbox_RepeatedMessageIsDeliveredOnce(t *testing.T) {
	b := newInbox()
	m := &pulsarclient.Message{ID: at(1), Key: "k", Body: []byte("first"), Size: 10}
	b.Take(m)
	b.Take(m)
	got, _, _ := b.take(10)
	if len(got) != 1 {
		t.Fatalf("%d deliveries", len(got))
	}
	b.Take(m)
	if more, _, _ := b.take(10); len(more) != 0 {
		t.Error("a message in hand was delivered again")
	}
	// A broker that lost its data uses the same position for another message.
	b.Take(&pulsarclient.Message{ID: at(1), Key: "k", Body: []byte("second"), Size: 20})
	if more, _, _ := b.take(10); len(more) != 1 || string(more[0].Body) != "second" {
		t.Error("the new message was not delivered")
	}
	if open := b.open(got); len(open) != 0 {
		t.Error("the earlier message can still be settled")
	}
	if b.bytes != 20 {
		t.Errorf("%d bytes are held", b.bytes)
	}
}

func TestInbox_EndForgetsAll(t *testing.T) {
	b := newInbox()
	b.Take(&pulsarclient.Message{ID: at(1), Body: []byte("b"), Size: 10})
	got, _, _ := b.take(1)
	b.end()
	if _, _, err := b.take(1); err == nil {
		t.Error("an ended inbox returned messages")
	}
	if !b.Take(&pulsarclient.Message{ID: at(2), Size: 10}) {
		t.Error("a message of a left subscription is asked for again")
	}
	if open := b.open(append(got, carrier.Delivery{Handle: "another's"})); len(open) != 0 || len(b.held) != 0 {
		t.Errorf("%d deliveries can be settled, %d are held", len(open), len(b.held))
	}
}

func TestInbox_AgainMakesUnsettledMessagesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		b.Take(&pulsarclient.Message{ID: at(1), Body: []byte("first"), Size: 10})
		b.Take(&pulsarclient.Message{ID: at(2), Body: []byte("second"), Size: 10})
		got, _, _ := b.take(2)
		open := b.open(got)
		b.again(open)
		b.settle(open[:1])
		_, changed, _ := b.take(2)
		<-changed
		if back, _, _ := b.take(2); len(back) != 1 || string(back[0].Body) != "second" {
			t.Errorf("%d messages came again", len(back))
		}
	})
}
