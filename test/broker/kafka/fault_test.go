package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/client/kafkaclient"
	"seckill/internal/sink"
	"seckill/internal/sink/sinkkafka"
	"seckill/test/server"
)

// working publishes and settles some messages.
func working(t *testing.T, c carrier.Carrier, prefix string) {
	t.Helper()
	want := numbered(prefix, 20)
	republish(t, c, want)
	consume(t, c, want)
}

// closesInTime closes a carrier that cannot leave its group, which is no harm.
func closesInTime(t *testing.T, c carrier.Carrier) {
	t.Helper()
	const deadline = time.Second
	began := time.Now()
	_ = c.Close(within(t, deadline))
	if took := time.Since(began); took > deadline+grace {
		t.Errorf("close took %s with a deadline of %s", took, deadline)
	}
}

// says tries until an error says what is wrong. The reason is known some seconds
// after it began.
func says(t *testing.T, text string, try func() error) {
	t.Helper()
	eventually(t, "the error says "+text, func() error {
		if err := try(); err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("it is: %w", err)
		}
		return nil
	})
}

func TestBroker_Killed(t *testing.T) {
	k := server.SharedKafka(t)
	opt := onTopic(t, k, 3)
	c := open(t, opt)
	other, backlog := open(t, onTopic(t, k, 3)), open(t, onTopic(t, k, 3))
	target, err := sinkkafka.Open(within(t, patience), sinkkafka.Options{Link: kafkaclient.Options{Brokers: []string{k.Addr()}}, Topic: onTopic(t, k, 1).Topic, Logger: noLog})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close(within(t, patience)) }()
	working(t, c, "before")
	working(t, other, "before")
	kept := numbered("kept", 20)
	publish(t, backlog, kept)

	k.Kill()
	fails(t, c)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	if _, err := target.Deliver(ctx, &sink.Message{ID: "1", Key: "k", Body: []byte("{}")}); err == nil {
		t.Error("the sink delivered without a broker")
	}
	cancel()
	says(t, "no broker is reachable: ", func() error { return c.Publish(within(t, time.Second), numbered("lost", 1)) })
	says(t, "dial tcp", func() error {
		_, err := target.Deliver(within(t, time.Second), &sink.Message{ID: "1", Key: "k", Body: []byte("{}")})
		return err
	})
	closesInTime(t, other)

	k.Start()
	consume(t, backlog, kept)
	working(t, c, "after")
	eventually(t, "deliver", func() error {
		_, err := target.Deliver(within(t, 5*time.Second), &sink.Message{ID: "1", Key: "k", Body: []byte("{}")})
		return err
	})
	drain(t, c, opt) // what was sent without a broker may have been stored
}

func TestBroker_Frozen(t *testing.T) {
	k := server.SharedKafka(t)
	c, other := open(t, onTopic(t, k, 3)), open(t, onTopic(t, k, 3))
	working(t, c, "before")
	working(t, other, "before")
	k.Pause()
	fails(t, c)
	says(t, "the broker does not answer", func() error { return c.Publish(within(t, time.Second), numbered("lost", 1)) })
	closesInTime(t, other)
	mustFail(t, options(k, newName(t)), time.Second, "context deadline exceeded")
	k.Resume()
	working(t, c, "after")
	created := options(k, newName(t))
	created.Create, created.Partitions, created.Replicas = true, 1, 1
	var fresh *carrierkafka.Carrier // its topic takes the controller, which knows later than others that its broker is back
	eventually(t, "create a topic", func() (err error) {
		fresh, err = carrierkafka.Open(within(t, patience), created)
		return err
	})
	t.Cleanup(func() { _ = fresh.Close(within(t, patience)) })
	working(t, fresh, "with a new topic")
}

func TestBroker_Wiped(t *testing.T) {
	k := server.SharedKafka(t)
	byHand := onTopic(t, k, 3)
	byItself := onTopic(t, k, 3)
	byItself.Create, byItself.Partitions, byItself.Replicas = true, 2, 1
	one, two := open(t, byHand), open(t, byItself)
	for _, c := range []carrier.Carrier{one, two} {
		working(t, c, "before") // so that the old offsets are above the new ones
	}
	inHand := numbered("in hand", 5)
	publish(t, one, inHand)
	old := collect(t, one, inHand)

	k.Stop()
	k.Wipe()
	k.Start()
	eventually(t, "the missing topic is reported", func() error {
		if err := one.Ping(within(t, 5*time.Second)); !errors.Is(err, kafkaclient.ErrNoTopic) {
			return errors.Join(errors.New("ping"), err)
		}
		return nil
	})
	says(t, "topic "+byHand.Topic+" does not exist: create it", func() error { return one.Publish(within(t, time.Second), numbered("lost", 1)) })
	working(t, two, "created by the engine")
	k.CreateTopic(byHand.Topic, 2)
	want := numbered("created by hand", 3)
	republish(t, one, want)
	got := collect(t, one, want)
	settle(t, one, old) // of a log that is gone: ignored
	settle(t, one, got)
	for _, c := range []carrier.Carrier{one, two} {
		working(t, c, "after")
	}
	drain(t, two, byItself)
}

// A disk that loses one partition keeps the topic and the group's offsets. The
// new log is shorter than the offsets: it is read from its beginning.
func TestBroker_LosesALog(t *testing.T) {
	k := server.SharedKafka(t)
	running, later := onTopic(t, k, 1), onTopic(t, k, 1)
	c := open(t, running)
	working(t, c, "before")
	drain(t, c, running)
	first := open(t, later)
	working(t, first, "before")
	if err := first.Close(within(t, patience)); err != nil {
		t.Fatalf("close: %v", err)
	}
	k.Stop()
	for _, topic := range []string{running.Topic, later.Topic} {
		if err := os.RemoveAll(filepath.Join(k.Dir(), "data", topic+"-0")); err != nil {
			t.Fatal(err)
		}
	}
	k.Start()
	second := open(t, later)
	want := numbered("first of the new log", 3)
	republish(t, second, want)
	republish(t, c, want)
	consume(t, second, want)
	drain(t, second, later)
	consume(t, c, want)
	drain(t, c, running)
}
