package carrierpulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"seckill/internal/pulsarlink"
)

const (
	// againAfter is when a message that was given back comes again.
	againAfter = 3 * time.Second
	// probeAfter is how long a consumer may be silent before it is asked whether it
	// still has its connection. One that has not, while the broker has been well
	// for deadAfter, is replaced: the library gives up some for good.
	probeAfter = 3 * time.Second
	deadAfter  = 10 * time.Second
	// maxAck bounds the messages of one acknowledgement.
	maxAck = 1000
)

// consumer is one subscription of this process, with a connection of its own:
// when that ends, the broker gives its messages to others.
type consumer struct {
	of     *receiver
	client *pulsarlink.Client
	inner  pulsar.Consumer
	layout string

	// The library blocks without regard to contexts while it connects, and its
	// queue of requests is short. So there is one acknowledgement and one probe at
	// a time.
	acks    chan ackRequest
	aliveAt atomic.Int64 // in Unix nanoseconds

	ctx    context.Context
	cancel context.CancelFunc
}

// ackRequest is one caller's deliveries.
type ackRequest struct {
	deliveries []*delivery
	result     chan error // of one place
}

// subscribe makes a consumer. Its loops are not started.
func subscribe(ctx context.Context, r *receiver) (*consumer, error) {
	layout := r.topic.Layout()
	client, err := r.opt.Link.Reachable(ctx).NewClient(r.log)
	if err != nil {
		return nil, err
	}
	partitions := 1 + strings.Count(layout, " ")
	options := pulsar.ConsumerOptions{
		Topic: r.topic.Name(), SubscriptionName: r.opt.Group, Type: r.kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		ReceiverQueueSize:           max(queueMost/partitions, queueLeast), NackRedeliveryDelay: againAfter,
		BackOffPolicyFunc: pulsarlink.Backoff, AutoDiscoveryPeriod: pulsarlink.NeverDiscover,
		// Acknowledgements are grouped here, where their errors are seen.
		AckWithResponse: true, AckGroupingOptions: &pulsar.AckGroupingOptions{MaxSize: 1},
	}
	if r.kind == pulsar.KeyShared {
		// Nobody relies on the order. With it, a consumer that joins would wait for
		// what slow ones have in hand.
		options.KeySharedPolicy = &pulsar.KeySharedPolicy{Mode: pulsar.KeySharedPolicyModeAutoSplit, AllowOutOfOrderDelivery: true}
	}
	inner, err := pulsarlink.Call(ctx, func() (pulsar.Consumer, error) {
		made, err := client.Subscribe(options)
		if err != nil {
			client.Close()
		}
		return made, err
	}, func(pulsar.Consumer) { client.Close() })
	if err != nil {
		return nil, client.Explain(err)
	}
	c := &consumer{of: r, client: client, inner: inner, layout: layout, acks: make(chan ackRequest)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.alive()
	return c, nil
}

func (c *consumer) start() {
	go c.read()
	go c.ackLoop()
	go c.probeLoop()
}

func (c *consumer) alive() { c.aliveAt.Store(time.Now().UnixNano()) }

func (c *consumer) silent() time.Duration { return time.Since(time.Unix(0, c.aliveAt.Load())) }

// isDead reports whether the consumer has lost its connection for good.
func (c *consumer) isDead() bool { return c.silent() > deadAfter && c.of.topic.Well() > deadAfter }

// read makes messages ready while there is room.
func (c *consumer) read() {
	for c.of.waitForRoom(c.ctx) {
		select {
		case m := <-c.inner.Chan():
			c.alive()
			c.of.add(c, m.Message)
		case <-c.ctx.Done():
		}
	}
}

// acknowledge returns when the broker has taken the acknowledgement. The
// deliveries stay held until it has, so that they do not come twice.
func (c *consumer) acknowledge(ctx context.Context, deliveries []*delivery) error {
	request := ackRequest{deliveries, make(chan error, 1)}
	select {
	case c.acks <- request:
	case <-c.ctx.Done():
		return nil // the deliveries are another consumer's now
	case <-ctx.Done():
		c.of.returned(c, deliveries)
		return fmt.Errorf("pulsar: wait to acknowledge messages: %w", ctx.Err())
	}
	select {
	case err := <-request.result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("pulsar: acknowledge messages: %w", ctx.Err())
	}
}

// ackLoop acknowledges what callers bring at the same time together.
func (c *consumer) ackLoop() {
	for {
		var requests []ackRequest
		select {
		case first := <-c.acks:
			requests = append(requests, first)
		case <-c.ctx.Done():
			return
		}
		for count := len(requests[0].deliveries); count < maxAck; {
			select {
			case next := <-c.acks:
				requests = append(requests, next)
				count += len(next.deliveries)
				continue
			default:
			}
			break
		}
		err := c.acknowledgeAll(requests)
		for _, request := range requests {
			request.result <- err
		}
	}
}

func (c *consumer) acknowledgeAll(requests []ackRequest) error {
	var all []*delivery
	for _, request := range requests {
		all = append(all, request.deliveries...)
	}
	ids := c.of.idsOf(all)
	_, err := pulsarlink.Call(c.ctx, func() (struct{}, error) { return struct{}{}, c.inner.AckIDList(ids) }, nil)
	if err != nil {
		c.of.returned(c, all)
		return fmt.Errorf("pulsar: acknowledge messages: %w", firstOf(err))
	}
	c.alive()
	c.of.acknowledged(all)
	return nil
}

// firstOf is one error of a list that has one per message.
func firstOf(err error) error {
	var each pulsar.AckError
	if errors.As(err, &each) {
		for _, one := range each {
			return one
		}
	}
	return err
}

// giveBack has the broker deliver messages again.
func (c *consumer) giveBack(deliveries []*delivery) {
	for _, d := range deliveries {
		c.inner.NackID(d.id)
	}
}

// probeLoop asks the broker for the topic's last message where nothing else has
// shown that the consumer is alive.
func (c *consumer) probeLoop() {
	tick := time.NewTicker(probeAfter)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		if c.silent() < probeAfter {
			continue
		}
		if _, err := pulsarlink.Call(c.ctx, c.inner.GetLastMessageIDs, nil); err == nil {
			c.alive()
		}
	}
}

// leave closes the consumer: the broker delivers its messages to others. It
// returns with the context, and goes on by itself for a bounded time.
func (c *consumer) leave(ctx context.Context) error {
	c.cancel()
	return pulsarlink.Do(ctx, c.client.Close) // closes the consumer first
}
