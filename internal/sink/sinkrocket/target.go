// Package sinkrocket delivers events to a RocketMQ topic.
package sinkrocket

import (
	"context"
	"log/slog"

	"seckill/internal/client/rocketclient"
	"seckill/internal/sink"
)

// Options name the topic and the connection.
type Options struct {
	Link   rocketclient.Options
	Topic  string // of type FIFO or NORMAL
	Logger *slog.Logger
}

// Target implements sink.Target. The key of the message is a key of RocketMQ,
// by which its tools find messages. On a FIFO topic it is also the message
// group, so the events of one order arrive in order. A NORMAL topic keeps no
// order.
type Target struct{ client *rocketclient.Client }

var _ sink.Target = (*Target)(nil)

// Open checks the topic. It waits for a proxy until the context ends.
func Open(ctx context.Context, opt Options) (*Target, error) {
	client := rocketclient.New(opt.Link, rocketclient.Role{Topic: opt.Topic, Types: []rocketclient.Type{rocketclient.FIFO, rocketclient.Normal}}, opt.Logger)
	if err := client.Check(ctx); err != nil {
		_ = client.Close(ctx) // the first error is the one to report
		return nil, err
	}
	return &Target{client}, nil
}

// Deliver returns when the broker has stored the message.
func (t *Target) Deliver(ctx context.Context, m *sink.Message) (string, error) {
	err := t.client.Send(ctx, &rocketclient.Message{
		Key: m.Key, Body: m.Body, Properties: map[string]string{sink.ContentTypeName: sink.ContentType, sink.IDName: m.ID},
	})
	if err != nil {
		return "", err
	}
	return sink.Stored, nil
}

// Close ends the session.
func (t *Target) Close(ctx context.Context) error { return t.client.Close(ctx) }
