// Package sinkpulsar delivers events to a Pulsar topic.
package sinkpulsar

import (
	"context"
	"errors"
	"log/slog"

	"seckill/internal/client/pulsarclient"
	"seckill/internal/sink"
)

// Options say which topic gets the events.
type Options struct {
	Link   pulsarclient.Options
	Topic  string // of public/default
	Logger *slog.Logger
}

// Target implements sink.Target. The message's key places the events of one
// order on one partition, in their order.
type Target struct {
	client *pulsarclient.Client
	topic  *pulsarclient.Topic
}

var _ sink.Target = (*Target)(nil)

// Open checks the topic. It waits for the broker no longer than the context
// lives.
func Open(ctx context.Context, opt Options) (*Target, error) {
	client := opt.Link.NewClient(opt.Logger)
	topic, err := client.OpenTopic(ctx, opt.Topic)
	if err != nil {
		_ = client.Close(ctx) // the first error is the one to report
		return nil, err
	}
	return &Target{client, topic}, nil
}

// Deliver returns when the broker has stored the message. After an error it may
// still arrive some seconds later.
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

// Close fails what is not stored yet.
func (t *Target) Close(ctx context.Context) error {
	return errors.Join(t.topic.Close(ctx), t.client.Close(ctx))
}
