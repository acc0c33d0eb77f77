package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

func TestPulsar_KeepsMessagesUntilWiped(t *testing.T) {
	p := NewPulsar(t)
	p.CreateTopic("kept", 2)
	sendToPulsar(t, p, "kept", 0)
	const delay = time.Second
	sent := time.Now()
	sendToPulsar(t, p, "later", delay)
	if got := receiveFromPulsar(t, p, "kept", "readers", brokerTestWithin); got != "value" {
		t.Errorf("read %q", got)
	}
	// Pulsar may deliver up to a tick of its timer, 1 s, too early.
	if got := receiveFromPulsar(t, p, "later", "readers", brokerTestWithin); got != "value" {
		t.Errorf("read %q %s after it was sent with a delay", got, time.Since(sent))
	}

	p.Kill()
	if err := dialOnce(p.Addr()); err == nil {
		t.Error("a killed broker answered")
	}
	p.Start()
	if got := receiveFromPulsar(t, p, "kept", "others", brokerTestWithin); got != "value" {
		t.Errorf("after a kill: read %q", got)
	}

	p.Stop()
	p.Wipe()
	p.Start()
	if got := receiveFromPulsar(t, p, "kept", "others", 2*time.Second); got != "" {
		t.Errorf("after a wipe: read %q", got)
	}
	sendToPulsar(t, p, "kept", 0)
	p.Pause()
	p.Resume()
	if got := receiveFromPulsar(t, p, "kept", "others", brokerTestWithin); got != "value" {
		t.Errorf("after a wipe and a pause: read %q", got)
	}
}

// pulsarClient logs nothing; the default is logrus on standard error.
func pulsarClient(t *testing.T, p *Pulsar) pulsar.Client {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: p.URL(), OperationTimeout: pulsarRequestTimeout, Logger: log.DefaultNopLogger()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func sendToPulsar(t *testing.T, p *Pulsar, topic string, delay time.Duration) {
	t.Helper()
	client := pulsarClient(t, p)
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, SendTimeout: pulsarRequestTimeout})
	if err != nil {
		t.Fatalf("make a producer of %s: %v", topic, err)
	}
	defer producer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), brokerTestWithin)
	defer cancel()
	if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Key: "key", Payload: []byte("value"), DeliverAfter: delay}); err != nil {
		t.Fatalf("send to %s: %v", topic, err)
	}
}

// receiveFromPulsar is the first message of a topic for a subscription; "" if
// there is none in time.
func receiveFromPulsar(t *testing.T, p *Pulsar, topic, subscription string, within time.Duration) string {
	t.Helper()
	client := pulsarClient(t, p)
	defer client.Close()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: subscription, Type: pulsar.KeyShared, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		t.Fatalf("subscribe to %s: %v", topic, err)
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	message, err := consumer.Receive(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	if err != nil {
		t.Fatalf("read %s: %v", topic, err)
	}
	if err := consumer.Ack(message); err != nil {
		t.Fatalf("acknowledge a message of %s: %v", topic, err)
	}
	return string(message.Payload())
}
