// Package kafka_test holds the Kafka adapters to a real broker.
package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/internal/carrier"
	"seckill/internal/carrier/carrierkafka"
	"seckill/internal/carrier/carriertest"
	"seckill/internal/kafkalink"
	"seckill/test/server"
)

// openWithin bounds what a test waits for, unless it says otherwise.
const openWithin = time.Minute

// within ends with the test or after a while.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

var names atomic.Int64

// name is a topic's or group's name that no other test has.
func name(t testing.TB) string {
	return fmt.Sprintf("%s.%d", strings.NewReplacer("/", ".").Replace(t.Name()), names.Add(1))
}

// options are those of a carrier on a broker.
func options(k *server.Kafka, topic string) carrierkafka.Options {
	return carrierkafka.Options{Link: kafkalink.Options{Brokers: []string{k.Addr()}}, Topic: topic, Group: topic + ".group"}
}

// open opens a carrier. The test closes it.
func open(t testing.TB, opt carrierkafka.Options) *carrierkafka.Carrier {
	t.Helper()
	c, err := carrierkafka.Open(within(t, openWithin), opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return c
}

func TestSuite(t *testing.T) {
	k := server.SharedKafka(t)
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
		opt := options(k, name(t))
		k.CreateTopic(opt.Topic, 4)
		return carriertest.Fixture{Open: func(t *testing.T) carrier.Carrier { return open(t, opt) }}
	})
}
