// Package carrier is the port of brokers that transport copies of outbox
// entries to the workers.
//
// The ledger's outbox stays the record. A carrier may lose, repeat, delay and
// reorder messages, and may lose all of them: the relay publishes whatever is
// not acknowledged in the outbox again.
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
//   - A message that is received and neither settled nor given back is delivered
//     again when its receiver is dead, within RedeliverWithin.
//   - A receiver that joins for the first time gets the messages that were
//     published before it.
//   - Messages of one key that were published by one caller, one after the other,
//     are usually received in that order. Nobody may rely on it.
//
// Methods are safe for concurrent use and return within their context's
// deadline.
type Carrier interface {
	// Publish returns nil when the broker has stored all messages for good. After
	// an error, any of them may be stored.
	Publish(ctx context.Context, messages []Message) error

	// MaxBytes is the largest body that Publish takes.
	MaxBytes() int

	// Receive waits until there is a message, and returns at most max. It returns
	// the context's error when there was none. Messages that were given back come
	// again after some seconds. A message that the adapter refuses to read comes
	// without a body, to be settled.
	Receive(ctx context.Context, max int) ([]Delivery, error)

	// Done settles deliveries: they do not come again. A delivery that the broker
	// has given to somebody else meanwhile is ignored. After an error, they may
	// come again.
	Done(ctx context.Context, deliveries []Delivery) error

	// Again gives deliveries back. They come again after some seconds, to anyone,
	// within RedeliverWithin.
	Again(ctx context.Context, deliveries []Delivery) error

	// Ping reports whether the broker answers and has the topic.
	Ping(ctx context.Context) error

	// Close gives back what is not settled, and leaves.
	Close(ctx context.Context) error
}

// RedeliverWithin is the longest time after which a message comes again whose
// receiver died or gave it back.
const RedeliverWithin = 90 * time.Second

// Message is what a carrier transports. Adapters do not look into it.
type Message struct {
	// Key is product and shard. Adapters place messages of one key on one
	// partition.
	Key string
	// Body is JSON, as asyncapi.yaml describes it.
	Body []byte
	// Signature travels beside the body, as the header SignatureHeader.
	Signature string
}

// SignatureHeader is the name of the signature's header or property.
const SignatureHeader = "seckill-signature"

// Delivery is one message on its way.
type Delivery struct {
	Message
	// Handle is the adapter's own, to settle the delivery by.
	Handle any
}

// ErrTooLarge says that a message is larger than the broker takes. Nothing of
// the batch was published.
var ErrTooLarge = errors.New("carrier: message is larger than the broker takes")

// ErrSetup says that the broker answers, and that an operator has to change
// something: the topic is missing or of the wrong type, a right or a password is.
// Waiting does not help.
var ErrSetup = errors.New("carrier: broker refuses the setup")

// MaxDelay is the longest delay that each Delayer takes: a proxy of RocketMQ that
// is not configured otherwise (maxDelayTimeMills).
const MaxDelay = 24 * time.Hour

// Delayer transports messages that are due at a time, at most MaxDelay away. The
// carriers of RocketMQ and Pulsar can; Kafka cannot.
//
// Deliveries are received and settled as in Carrier. A message may come early
// or late, more than once, or never.
type Delayer interface {
	// PublishAt returns nil when the broker has stored the message for good.
	PublishAt(ctx context.Context, m Message, due time.Time) error
	Receive(ctx context.Context, max int) ([]Delivery, error)
	Done(ctx context.Context, deliveries []Delivery) error
	Again(ctx context.Context, deliveries []Delivery) error
	Close(ctx context.Context) error
}
