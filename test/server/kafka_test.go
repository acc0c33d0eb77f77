package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"seckill/test/certificate"
)

// brokerTestWithin bounds what a test itself does with a broker.
const brokerTestWithin = time.Minute

func TestKafka_KeepsMessagesUntilWiped(t *testing.T) {
	k := NewKafka(t)
	k.CreateTopic("kept", 2)
	if err := produceToKafka(t, k, "kept"); err != nil {
		t.Fatal(err)
	}
	if got := consumeFromKafka(t, k, "kept"); got != "value" {
		t.Errorf("read %q", got)
	}
	if got := k.ConsoleConsume("kept", 1); got != "h:1\tkey\tvalue\n" {
		t.Errorf("the console consumer printed %q", got)
	}

	k.Kill()
	if err := kafkaReady(k.Addr()); err == nil {
		t.Error("a killed broker answered")
	}
	k.Start()
	if got := consumeFromKafka(t, k, "kept"); got != "value" {
		t.Errorf("after a kill: read %q", got)
	}

	k.Stop()
	k.Wipe()
	k.Start()
	if err := k.led("kept"); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("after a wipe the topic: %v", err)
	}
	k.CreateTopic("kept", 2)
	if err := produceToKafka(t, k, "kept"); err != nil {
		t.Errorf("after a wipe: %v", err)
	}

	k.Pause()
	answered := make(chan error, 1)
	go func() { answered <- kafkaReady(k.Addr()) }()
	k.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after a pause: %v", err)
	}
}

func TestKafka_SASLOverTLS(t *testing.T) {
	authority := certificate.NewAuthority(t)
	k := NewKafkaWith(t, KafkaOptions{SASL: true, TLS: &TLS{Pair: authority.Issue("kafka", "127.0.0.1"), Anyone: true}})
	k.CreateTopic("secured", 1)
	pem, err := os.ReadFile(authority.File())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	secured := func(login sasl.Mechanism) error {
		return produceToKafka(t, k, "secured", kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.SASL(login))
	}
	user := scram.Auth{User: KafkaUser, Pass: KafkaPassword}
	for name, login := range map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: KafkaUser, Pass: KafkaPassword}.AsMechanism(),
		"SCRAM-SHA-256": user.AsSha256Mechanism(),
		"SCRAM-SHA-512": user.AsSha512Mechanism(),
	} {
		if err := secured(login); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := secured(plain.Auth{User: KafkaUser, Pass: "wrong"}.AsMechanism()); err == nil {
		t.Error("a wrong password is good enough")
	}
	if got := k.ConsoleConsume("secured", 3); strings.Count(got, "value") != 3 {
		t.Errorf("the console consumer printed %q", got)
	}
}

func TestSharedKafka_RunsForTheNextTestAndMakesRoomForAnother(t *testing.T) {
	var pid int
	t.Run("first", func(t *testing.T) {
		k := SharedKafka(t)
		pid = k.PID()
	})
	t.Run("reused", func(t *testing.T) {
		k := SharedKafka(t)
		if k.PID() != pid {
			t.Errorf("process %d, before it was %d", k.PID(), pid)
		}
		k.Kill()
	})
	t.Run("revived", func(t *testing.T) {
		SharedKafka(t).CreateTopic("revived", 1)
	})
	t.Run("replaced", func(t *testing.T) {
		slot.take(t)
		if slot.shared != nil {
			t.Error("the shared broker runs beside another")
		}
	})
}

func produceToKafka(t *testing.T, k *Kafka, topic string, options ...kgo.Opt) error {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(k.Addr()), kgo.DefaultProduceTopic(topic), kgo.RecordDeliveryTimeout(kafkaRequestTimeout))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), brokerTestWithin)
	defer cancel()
	return client.ProduceSync(ctx, &kgo.Record{
		Key: []byte("key"), Value: []byte("value"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}},
	}).FirstErr()
}

// consumeFromKafka is the first value of a topic.
func consumeFromKafka(t *testing.T, k *Kafka, topic string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), brokerTestWithin)
	defer cancel()
	for {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
		if records := fetches.Records(); len(records) > 0 {
			return string(records[0].Value)
		}
	}
}
