package sink

import (
	"context"
	"time"
)

// What the targets that are brokers have in common. The body is a CloudEvent in
// structured mode, so its attributes are not repeated beside it.
const (
	ContentTypeName = "content-type"
	ContentType     = "application/cloudevents+json; charset=UTF-8"
	IDName          = "webhook-id" // the same for all kinds of sinks
	// Stored is the status of a delivery that succeeded.
	Stored = "stored"
)

// closeTimeout bounds the end of a broker's client.
const closeTimeout = 5 * time.Second

// CloseInTime ends a broker's client, which fails what is not stored yet.
func CloseInTime(end func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return end(ctx)
}
