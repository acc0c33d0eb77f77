package rocketclient

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// pollFor is how long a proxy waits for a message; it is the proxy's
	// minimum.
	pollFor = 5 * time.Second
	// pollTimeout bounds a whole poll.
	pollTimeout = pollFor + 5*time.Second
	// groupWait is the time in which a broker refuses an unknown group.
	groupWait = 500 * time.Millisecond
	// MaxPoll is the broker's limit for the messages of one poll.
	MaxPoll = 32
)

// everything is the filter of a subscription to all messages.
var everything = &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}

// hostName is sent with each message, for diagnosis.
var hostName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// Message is a message of a topic.
type Message struct {
	Key        string // without spaces
	Properties map[string]string
	Body       []byte
	// Due is the delivery time of a message of a Delay topic.
	Due time.Time
}

// Receipt identifies a received message to settle it.
type Receipt struct {
	handle, messageID, broker string
}

// Received is a received message. It comes again after its invisible time,
// unless it is settled.
type Received struct {
	Message
	Receipt Receipt
	// Attempt counts the deliveries of the message, from 1.
	Attempt int
}

// Send returns nil when a broker has stored the message. Messages of one key go
// to one broker. If that broker is away, another one gets them, unless the
// topic is FIFO.
func (c *Client) Send(ctx context.Context, m *Message) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	brokers, err := c.await(ctx, func(b *broker) bool { return b.sends })
	if err != nil {
		return err
	}
	first := int(hashOf(m.Key) % uint32(len(brokers)))
	for i := range brokers {
		to := &brokers[(first+i)%len(brokers)]
		err = c.send(ctx, to, m)
		if err == nil || !outage(err) || to.kind == FIFO || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (c *Client) send(ctx context.Context, to *broker, m *Message) error {
	rpc, err := to.peer.use(ctx)
	if err != nil {
		return err
	}
	answer, err := rpc.SendMessage(c.link.signed(ctx, c.id), &v2.SendMessageRequest{Messages: []*v2.Message{c.wire(m, to.kind)}})
	if err != nil {
		return fmt.Errorf("send to topic %s: %w", c.role.Topic, explain(ctx, err))
	}
	if err := refused(answer.GetStatus()); err != nil {
		return fmt.Errorf("send to topic %s: %w", c.role.Topic, err)
	}
	return nil
}

func (c *Client) wire(m *Message, kind Type) *v2.Message {
	system := &v2.SystemProperties{
		MessageId: "01" + randomHex(), MessageType: wireTypes[kind], BodyEncoding: v2.Encoding_IDENTITY,
		BornTimestamp: timestamppb.Now(), BornHost: hostName(),
	}
	if m.Key != "" {
		system.Keys = []string{m.Key}
	}
	switch kind {
	case Delay:
		system.DeliveryTimestamp = timestamppb.New(m.Due)
	case FIFO:
		system.MessageGroup = &m.Key
	}
	return &v2.Message{Topic: resource(c.role.Topic), UserProperties: m.Properties, SystemProperties: system, Body: m.Body}
}

func hashOf(key string) uint32 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, key) // never fails
	return h.Sum32()
}

// await returns the matching brokers. It waits for the first route only.
func (c *Client) await(ctx context.Context, fits func(*broker) bool) ([]broker, error) {
	all, err := c.known(ctx)
	if err != nil {
		return nil, err
	}
	fitting := make([]broker, 0, len(all))
	for i := range all {
		if fits(&all[i]) {
			fitting = append(fitting, all[i])
		}
	}
	if len(fitting) == 0 {
		return nil, fmt.Errorf("%w: no broker of topic %s allows it", ErrSetup, c.role.Topic)
	}
	return fitting, nil
}

// Brokers returns the names of the brokers to poll. Before the first answer of
// a proxy there are none.
func (c *Client) Brokers() []string {
	var names []string
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.brokers {
		if b.reads {
			names = append(names, b.name)
		}
	}
	return names
}

// Poll receives messages from a broker. After some seconds without a message it
// returns none. "" means any broker of the topic. The messages are invisible to
// others for the given time.
func (c *Client) Poll(ctx context.Context, name string, most int, invisible time.Duration) ([]Received, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	brokers, err := c.await(ctx, func(b *broker) bool { return b.reads && (name == "" || b.name == name) })
	if err != nil {
		return nil, err
	}
	from := &brokers[0]
	rpc, err := from.peer.use(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := rpc.ReceiveMessage(c.link.signed(ctx, c.id), &v2.ReceiveMessageRequest{
		Group: resource(c.role.Group), MessageQueue: from.queue, FilterExpression: everything, BatchSize: int32(min(most, MaxPoll)),
		InvisibleDuration: durationpb.New(invisible), LongPollingTimeout: durationpb.New(pollFor),
	})
	if err != nil {
		return nil, fmt.Errorf("receive from topic %s: %w", c.role.Topic, explain(ctx, err))
	}
	var got []Received
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err == nil && part.GetStatus() != nil {
			err = refused(part.GetStatus())
		} else {
			err = explain(ctx, err)
		}
		switch {
		case errors.Is(err, errNothing):
			return nil, nil
		case err != nil:
			// The messages before the error are valid.
			return got, fmt.Errorf("receive from topic %s: %w", c.role.Topic, err)
		case part.GetMessage() != nil:
			got = append(got, receivedFrom(part.GetMessage(), from.name))
		}
	}
}

// CheckGroup returns ErrSetup if the broker refuses the group. It polls for
// zero messages: a broker checks the group first, and keeps a poll open that
// finds nothing. So no answer means that the group exists. It ignores other
// errors, which may be an outage.
func (c *Client) CheckGroup(ctx context.Context, invisible time.Duration) error {
	if err := c.Check(ctx); err != nil {
		return err
	}
	// No deadline: proxies refuse a poll that must end before pollFor.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer time.AfterFunc(groupWait, cancel).Stop()
	defer context.AfterFunc(ctx, cancel)()
	if _, err := c.Poll(asking, "", 0, invisible); errors.Is(err, ErrSetup) {
		return err
	}
	return nil
}

func receivedFrom(m *v2.Message, broker string) Received {
	system := m.GetSystemProperties()
	return Received{
		Message: Message{
			Key: strings.Join(system.GetKeys(), " "), Properties: m.GetUserProperties(), Body: m.GetBody(), Due: system.GetDeliveryTimestamp().AsTime(),
		},
		Receipt: Receipt{system.GetReceiptHandle(), system.GetMessageId(), broker},
		Attempt: int(system.GetDeliveryAttempt()),
	}
}

// at returns the client of a receipt's broker.
func (c *Client) at(ctx context.Context, name string) (v2.MessagingServiceClient, error) {
	brokers, err := c.known(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range brokers {
		if b.name == name {
			return b.peer.use(ctx)
		}
	}
	return nil, fmt.Errorf("rocketmq: broker %s has no part of topic %s at present", name, c.role.Topic)
}

// Ack settles messages of one broker. It ignores ErrExpired.
func (c *Client) Ack(ctx context.Context, receipts []Receipt) error {
	if len(receipts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rpc, err := c.at(ctx, receipts[0].broker)
	if err != nil {
		return err
	}
	request := &v2.AckMessageRequest{Group: resource(c.role.Group), Topic: resource(c.role.Topic)}
	for _, r := range receipts {
		request.Entries = append(request.Entries, &v2.AckMessageEntry{MessageId: r.messageID, ReceiptHandle: r.handle})
	}
	answer, err := rpc.AckMessage(c.link.signed(ctx, c.id), request)
	if err != nil {
		return fmt.Errorf("acknowledge: %w", explain(ctx, err))
	}
	if len(answer.GetEntries()) == 0 { // the whole request was refused
		err = refused(answer.GetStatus())
	}
	for _, e := range answer.GetEntries() {
		if one := refused(e.GetStatus()); one != nil && !errors.Is(one, ErrExpired) {
			err = one
		}
	}
	if err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	return nil
}

// Hide makes a message come again after a time. The receipt is then used up.
func (c *Client) Hide(ctx context.Context, r Receipt, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rpc, err := c.at(ctx, r.broker)
	if err != nil {
		return err
	}
	answer, err := rpc.ChangeInvisibleDuration(c.link.signed(ctx, c.id), &v2.ChangeInvisibleDurationRequest{
		Group: resource(c.role.Group), Topic: resource(c.role.Topic),
		ReceiptHandle: r.handle, MessageId: r.messageID, InvisibleDuration: durationpb.New(d),
	})
	if err != nil {
		return fmt.Errorf("give back: %w", explain(ctx, err))
	}
	if err := refused(answer.GetStatus()); err != nil && !errors.Is(err, ErrExpired) {
		return fmt.Errorf("give back: %w", err)
	}
	return nil
}

// Broker returns the name of the broker that has the message.
func (r Receipt) Broker() string { return r.broker }
