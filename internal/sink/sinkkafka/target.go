// Package sinkkafka delivers events to a Kafka topic.
package sinkkafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/client/kafkaclient"
	"seckill/internal/sink"
)

// ifLost is what an operator does: the engine counts what the topic had as
// delivered.
const ifLost = "send them again with seckill sink replay NAME --from TIME"

// Options say which topic gets the events.
type Options struct {
	Link  kafkaclient.Options
	Topic string
	// Create has a missing topic created with Partitions and Replicas.
	Create               bool
	Partitions, Replicas int
	Logger               *slog.Logger
}

// Target implements sink.Target. The record's key is the message's key, so that
// events of one order are in one partition, in their order.
type Target struct{ topic *kafkaclient.Topic }

var _ sink.Target = (*Target)(nil)

// Open checks the topic. It waits for the broker no longer than the context
// lives.
func Open(ctx context.Context, opt Options) (*Target, error) {
	topic, err := kafkaclient.OpenTopic(ctx, opt.Link, kafkaclient.TopicOptions{
		Name: opt.Topic, Create: opt.Create, Partitions: opt.Partitions, Replicas: opt.Replicas, IfLost: ifLost,
	}, opt.Logger)
	if err != nil {
		return nil, err
	}
	return &Target{topic}, nil
}

// Deliver returns when the broker and all its in-sync replicas have stored the
// message. After an error it may still arrive some seconds later.
func (t *Target) Deliver(ctx context.Context, m *sink.Message) (string, error) {
	err := t.topic.Write(ctx, []*kgo.Record{{
		Key: []byte(m.Key), Value: m.Body,
		Headers: []kgo.RecordHeader{
			{Key: sink.ContentTypeName, Value: []byte(sink.ContentType)},
			{Key: sink.IDName, Value: []byte(m.ID)},
		},
	}})
	if err != nil {
		return "", err
	}
	return sink.Stored, nil
}

// Close fails what is not stored yet.
func (t *Target) Close(ctx context.Context) error { return t.topic.Close(ctx) }
