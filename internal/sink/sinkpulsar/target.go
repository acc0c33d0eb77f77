// Package sinkpulsar delivers events to a Pulsar topic.
package sinkpulsar

import (
	"context"
	"errors"
	"log/slog"

	"seckill/internal/client/pulsarclient"
	"seckill/internal/sink"
)

// Options name the topic and the connection.
type Options struct {
	Link   pulsarclient.Options
	Topic  string // of public/default
	Logger *slog.Logger
}

// Target implements sink.Target. The key of the message puts the events of one
// order on one partition, in order.
type Target struct {
	client *pulsarclient.Client
	topic  *pulsarclient.Topic
}

var _ sink.Target = (*Target)(nil)

// Open checks the topic. It waits for the broker until the context ends.
func Open(ctx context.Context, opt Options) (*Target, error) {
	client := opt.Link.NewClient(opt.Logger)
	topic, err := client.OpenTopic(ctx, opt.Topic)
	if err != nil {
		_ = client.Close(ctx) // the first error is the one to report
		return nil, err
	}
	return &Target{client, topic}, nil
}

// Deliver returns when the broker has stored the message. After an error the
// message may still arrive some seconds later.
func (t *Target) Deliver(ctx context.Context, m *sink.Message) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	err := t.topic.Write(ctx, []pulsarclient.Outgoing{{
		Key: m.Key, Body: m.Body, EventTime: m.Time,
		Properties: []pulsarclient.Property{{Name: sink.ContentTypeName, Value: sink.ContentType}, {Name: sink.IDName, Value: m.ID}},
	}})
	if err != nil {
		return "", err
	}
	return sink.Stored, nil
}

// Close fails messages that are not stored yet.
func (t *Target) Close(ctx context.Context) error {
	return errors.Join(t.topic.Close(ctx), t.client.Close(ctx))
}
