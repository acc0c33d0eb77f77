// Package carrier is the port of brokers that carry copies of outbox entries to
// the workers.
//
// The ledger's outbox stays the record. A carrier may lose, repeat, delay and
// reorder messages, or lose all of them: the relay publishes unacknowledged
// entries again.
//
//   - carrier.go: the port; message.go, expiry.go: the messages
//   - relay: copies entries to a broker and back; carriertest: the conformance suite
package carrier

import (
	"context"
	"errors"
	"time"
)

// Carrier is the port. An adapter is done when it passes carriertest.
//
//   - A message that Publish has accepted is delivered to one receiver at a time
//     until it is settled as done, at least once.
//   - A message that a receiver has neither settled nor given back is delivered
//     again within RedeliverWithin after the receiver died.
//   - A receiver that joins for the first time gets the messages that were
//     published before.
//   - Messages of one key from one caller, published one after the other, usually
//     arrive in that order. No code may rely on it.
//
// Methods are safe for concurrent use and return within their context's
// deadline.
type Carrier interface {
	// Publish returns nil when the broker has stored all messages durably.
	// After an error, any of them may be stored.
	Publish(ctx context.Context, messages []Message) error

	// MaxBytes returns the size of the largest body that Publish accepts.
	MaxBytes() int

	// Receive waits for a message and returns at most max. It returns the
	// context's error if there was none. Messages that were given back come
	// again after some seconds. A message that the adapter refuses to read
	// comes without a body, and must be settled.
	Receive(ctx context.Context, max int) ([]Delivery, error)

	// Done settles deliveries: they do not come again. It ignores a delivery
	// that the broker has given to another receiver meanwhile. After an error,
	// they may come again.
	Done(ctx context.Context, deliveries []Delivery) error

	// Again gives deliveries back. They come again to any receiver after some
	// seconds, within RedeliverWithin.
	Again(ctx context.Context, deliveries []Delivery) error

	// Ping reports whether the broker answers and has the topic.
	Ping(ctx context.Context) error

	// Close gives unsettled messages back, and disconnects.
	Close(ctx context.Context) error
}

// RedeliverWithin bounds the time after which a message comes again, if its
// receiver died or gave it back.
const RedeliverWithin = 90 * time.Second

// Message is the unit that a carrier transports. Adapters do not read its
// content.
type Message struct {
	// Key is product and shard. Adapters place messages of one key on one
	// partition.
	Key string
	// Body is JSON, as asyncapi.yaml describes it.
	Body []byte
	// Signature is sent beside the body, as the header SignatureHeader.
	Signature string
}

// SignatureHeader is the name of the signature's header or property.
const SignatureHeader = "seckill-signature"

// Delivery is one received message.
type Delivery struct {
	Message
	// Handle belongs to the adapter, which uses it to settle the delivery.
	Handle any
}

// ErrTooLarge says that a message is larger than the broker accepts. No message
// of the batch was published.
var ErrTooLarge = errors.New("carrier: message is larger than the broker takes")

// ErrSetup says that the broker answers, but an operator has to change its
// setup: the topic is missing or has the wrong type, or a permission or
// password is wrong. Waiting does not help.
var ErrSetup = errors.New("carrier: broker refuses the setup")

// MaxDelay is the longest delay that every Delayer accepts. It is the default
// of a RocketMQ proxy (maxDelayTimeMills).
const MaxDelay = 24 * time.Hour

// Delayer transports messages that are due at a time, at most MaxDelay from
// now. The carriers of RocketMQ and Pulsar implement it; Kafka has no delayed
// messages.
//
// Deliveries are received and settled as in Carrier. A message may come early,
// late, repeatedly, or never.
type Delayer interface {
	// PublishAt returns nil when the broker has stored the message durably.
	PublishAt(ctx context.Context, m Message, due time.Time) error
	Receive(ctx context.Context, max int) ([]Delivery, error)
	Done(ctx context.Context, deliveries []Delivery) error
	Again(ctx context.Context, deliveries []Delivery) error
	Close(ctx context.Context) error
}
