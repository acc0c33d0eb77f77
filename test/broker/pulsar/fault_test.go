package pulsar_test

import (
	"context"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierpulsar"
	"seckill/internal/sink"
	"seckill/test/server"
)

// working publishes and settles some messages.
func working(t *testing.T, c carrier.Carrier, prefix string) {
	t.Helper()
	want := numbered(prefix, 20)
	republish(t, c, want)
	consume(t, c, want)
}

// inHand publishes and receives some messages.
func inHand(t *testing.T, c carrier.Carrier) []carrier.Delivery {
	t.Helper()
	want := numbered("in hand", 5)
	publish(t, c, want)
	return collect(t, c, want)
}

func TestBroker_Killed(t *testing.T) {
	p := server.SharedPulsar(t)
	whole, parted := open(t, onTopic(t, p, 0)), open(t, onTopic(t, p, 3))
	both := []*carrierpulsar.Carrier{whole, parted}
	other, backlog := open(t, onTopic(t, p, 0)), open(t, onTopic(t, p, 0))
	delayer := open(t, onTopic(t, p, 0))
	target := openTarget(t, p, newName(t))
	working(t, other, "before")
	kept, later := numbered("kept", 20), numbered("later", 1)
	publish(t, backlog, kept)
	due := time.Now().Add(time.Second)
	if err := delayer.PublishAt(within(t, patience), later[0], due); err != nil {
		t.Fatal(err)
	}
	held := map[carrier.Carrier][]carrier.Delivery{}
	for _, c := range both {
		working(t, c, "before")
		held[c] = inHand(t, c)
	}

	p.Kill()
	for _, c := range both {
		fails(t, c, held[c][:2])
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	if _, err := target.Deliver(ctx, &sink.Message{ID: "1", Key: "k", Body: []byte("{}")}); err == nil {
		t.Error("the sink delivered without a broker")
	}
	cancel()
	began := time.Now()
	_ = other.Close(within(t, 2*time.Second)) // it cannot say goodbye, which is no harm
	if took := time.Since(began); took > 2*time.Second+grace {
		t.Errorf("close without a broker took %s", took)
	}

	p.Start()
	consume(t, backlog, kept)
	for _, c := range both {
		working(t, c, "after")
		settle(t, c, held[c][2:]) // they did not come again meanwhile, and are settled now
	}
	consume(t, delayer, later)
	eventually(t, "deliver", func() error {
		_, err := target.Deliver(within(t, 5*time.Second), &sink.Message{ID: "1", Key: "k", Body: []byte("{}")})
		return err
	})
}

func TestBroker_Frozen(t *testing.T) {
	p := server.SharedPulsar(t)
	c, other := open(t, onTopic(t, p, 3)), open(t, onTopic(t, p, 0))
	working(t, c, "before")
	working(t, other, "before")
	held := inHand(t, c)
	p.Pause()
	fails(t, c, held)
	mustFail(t, options(p, newName(t)), time.Second, "context deadline exceeded")
	began := time.Now()
	ended, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = other.Close(ended)
	if took := time.Since(began); took > time.Second+grace {
		t.Errorf("close took %s", took)
	}
	p.Resume()
	working(t, c, "after")
}

func TestBroker_Wiped(t *testing.T) {
	p := server.SharedPulsar(t)
	whole, parted := open(t, onTopic(t, p, 0)), open(t, onTopic(t, p, 3))
	both := []*carrierpulsar.Carrier{whole, parted}
	delayer := open(t, onTopic(t, p, 0))
	held := map[carrier.Carrier][]carrier.Delivery{}
	for _, c := range both {
		working(t, c, "before")
		held[c] = inHand(t, c)
	}

	p.Stop()
	p.Wipe()
	p.Start()
	for _, c := range both { // the broker creates both topics again, without partitions
		want := numbered("of the new topic", 5)
		republish(t, c, want)
		got := collect(t, c, want)
		if err := c.Done(within(t, 5*time.Second), held[c]); err != nil { // of a topic that is gone
			t.Logf("settle what is gone: %v", err)
		}
		settle(t, c, got)
		working(t, c, "after")
		nothing(t, c)
	}
	later := numbered("later", 1)
	eventually(t, "publish", func() error {
		return delayer.PublishAt(within(t, 5*time.Second), later[0], time.Now().Add(time.Second))
	})
	consume(t, delayer, later)
}
