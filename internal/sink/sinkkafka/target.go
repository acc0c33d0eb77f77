// Package sinkkafka delivers events to a Kafka topic.
package sinkkafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/internal/client/kafkaclient"
	"seckill/internal/sink"
)

// ifLost is the advice for operators: the engine counts the lost messages of a
// topic as delivered.
const ifLost = "send them again with seckill sink replay NAME --from TIME"

// Options name the topic and the connection.
type Options struct {
	Link  kafkaclient.Options
	Topic string
	// Create creates a missing topic with Partitions and Replicas.
	Create               bool
	Partitions, Replicas int
	Logger               *slog.Logger
}

// Target implements sink.Target. The record has the key of the message, so the
// events of one order are in one partition, in order.
type Target struct{ topic *kafkaclient.Topic }

var _ sink.Target = (*Target)(nil)

// Open checks the topic. It waits for the broker until the context ends.
func Open(ctx context.Context, opt Options) (*Target, error) {
	topic, err := kafkaclient.OpenTopic(ctx, opt.Link, kafkaclient.TopicOptions{
		Name: opt.Topic, Create: opt.Create, Partitions: opt.Partitions, Replicas: opt.Replicas, IfLost: ifLost,
	}, opt.Logger)
	if err != nil {
		return nil, err
	}
	return &Target{topic}, nil
}

// Deliver returns when the broker and all in-sync replicas have stored the
// message. After an error the message may still arrive some seconds later.
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

// Close fails messages that are not stored yet.
func (t *Target) Close(ctx context.Context) error { return t.topic.Close(ctx) }
