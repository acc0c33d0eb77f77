package rocketclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"seckill/internal/background"
)

const (
	// callTimeout bounds a call whose context has no earlier deadline.
	callTimeout = 10 * time.Second
	// routeEvery is the interval of reading the topic's brokers, and routePause
	// the pause after a failure.
	routeEvery = 10 * time.Second
	routePause = 500 * time.Millisecond
	checkPause = 250 * time.Millisecond
)

// Type is the type of a topic. RocketMQ refuses messages of other types.
type Type string

// The types that the engine uses.
const (
	Normal Type = "NORMAL"
	Delay  Type = "DELAY" // delivered when due
	FIFO   Type = "FIFO"  // in order per key
)

var wireTypes = map[Type]v2.MessageType{
	Normal: v2.MessageType_NORMAL, Delay: v2.MessageType_DELAY, FIFO: v2.MessageType_FIFO,
}

// Role is the use of a client: it sends to a topic, or with a group it receives
// from it.
type Role struct {
	Topic string
	// Types are the types that the topic may have.
	Types []Type
	Group string
}

// fits returns the topic's type, if it is one of the role's.
func (r *Role) fits(accepted []v2.MessageType) (Type, bool) {
	for _, t := range r.Types {
		if slices.Contains(accepted, wireTypes[t]) {
			return t, true
		}
	}
	// Old brokers do not report the types.
	return r.Types[0], len(accepted) == 0 || slices.Contains(accepted, v2.MessageType_MESSAGE_TYPE_UNSPECIFIED)
}

// Client has sessions with all proxies of a topic. After an outage it works
// again by itself: during it, calls return errors.
//
// Methods are safe for concurrent use and return within their context's
// deadline.
type Client struct {
	link     Options
	role     Role
	id       string
	access   *v2.Endpoints // as configured
	settings *v2.Settings
	log      *slog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	peers   map[string]*peer // by nameOf their endpoints
	brokers []broker         // sorted by name; empty before the first route
}

// broker is a broker that has queues of the topic.
type broker struct {
	name         string
	peer         *peer
	queue        *v2.MessageQueue // one of its queues, for requests
	kind         Type             // of the topic
	reads, sends bool
}

// New makes a client, which connects by itself. Check reports whether it works.
func New(link Options, role Role, log *slog.Logger) *Client {
	c := &Client{
		link: link, role: role, access: link.endpoints(), log: log, peers: make(map[string]*peer),
		id: fmt.Sprintf("%s@%d@seckill@%s", hostName(), os.Getpid(), randomHex()),
	}
	c.settings = c.newSettings()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.peer(c.access)
	c.tasks.Go(c.watch)
	return c
}

func (c *Client) newSettings() *v2.Settings {
	s := &v2.Settings{
		AccessPoint: c.access, RequestTimeout: durationpb.New(callTimeout),
		UserAgent: &v2.UA{Language: v2.Language_GOLANG, Version: protocolVersion, Hostname: hostName()},
	}
	if c.role.Group == "" {
		s.ClientType = v2.ClientType_PRODUCER.Enum()
		s.PubSub = &v2.Settings_Publishing{Publishing: &v2.Publishing{Topics: []*v2.Resource{resource(c.role.Topic)}}}
		return s
	}
	s.ClientType = v2.ClientType_SIMPLE_CONSUMER.Enum()
	s.PubSub = &v2.Settings_Subscription{Subscription: &v2.Subscription{
		Group:              resource(c.role.Group),
		LongPollingTimeout: durationpb.New(pollFor),
		Subscriptions:      []*v2.SubscriptionEntry{{Topic: resource(c.role.Topic), Expression: everything}},
	}}
	return s
}

// peer returns the peer at an address, and makes one if there is none.
func (c *Client) peer(at *v2.Endpoints) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := nameOf(at)
	p := c.peers[name]
	if p == nil {
		p = newPeer(&c.link, at, c.id, c.settings, c.log)
		c.peers[name] = p
	}
	if c.ctx.Err() != nil { // a call during Close gets errClosed
		p.cancel()
	}
	return p
}

// Check waits until a proxy answers and has the topic with the right type. It
// retries until the context ends, unless the error is ErrSetup.
func (c *Client) Check(ctx context.Context) error {
	isSetup := func(err error) bool { return errors.Is(err, ErrSetup) }
	return background.Retry(ctx, checkPause, isSetup, func() error { return c.findBrokers(ctx) })
}

// Ping reports whether a proxy answers and has the topic.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.route(ctx)
	return err
}

// route reads the queues of the topic.
func (c *Client) route(ctx context.Context) ([]*v2.MessageQueue, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rpc, err := c.peer(c.access).use(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := rpc.QueryRoute(c.link.signed(ctx, c.id), &v2.QueryRouteRequest{Topic: resource(c.role.Topic), Endpoints: c.access})
	if err != nil {
		return nil, fmt.Errorf("find topic %s: %w", c.role.Topic, explain(ctx, err))
	}
	if err := refused(answer.GetStatus()); err != nil {
		return nil, fmt.Errorf("find topic %s: %w", c.role.Topic, err)
	}
	queues := answer.GetMessageQueues()
	if len(queues) == 0 {
		return nil, fmt.Errorf("find topic %s: rocketmq: no broker has it at present", c.role.Topic)
	}
	for _, q := range queues {
		types := q.GetAcceptMessageTypes()
		if _, fits := c.role.fits(types); !fits {
			return nil, fmt.Errorf("%w: topic %s is of type %v, and %v is needed", ErrSetup, c.role.Topic, types, c.role.Types)
		}
	}
	return queues, nil
}

// findBrokers updates the list of brokers.
func (c *Client) findBrokers(ctx context.Context) error {
	queues, err := c.route(ctx)
	if err != nil {
		return err
	}
	found := make(map[string]*broker)
	for _, q := range queues {
		if q.GetBroker().GetId() != 0 { // a replica
			continue
		}
		b := found[q.GetBroker().GetName()]
		if b == nil {
			b = &broker{name: q.GetBroker().GetName(), peer: c.peer(q.GetBroker().GetEndpoints()), queue: q}
			b.kind, _ = c.role.fits(q.GetAcceptMessageTypes())
			found[b.name] = b
		}
		can := q.GetPermission()
		b.reads = b.reads || can == v2.Permission_READ || can == v2.Permission_READ_WRITE
		b.sends = b.sends || can == v2.Permission_WRITE || can == v2.Permission_READ_WRITE
	}
	var brokers []broker
	for _, b := range found {
		brokers = append(brokers, *b)
	}
	slices.SortFunc(brokers, func(a, b broker) int { return strings.Compare(a.name, b.name) })
	c.keep(brokers)
	return nil
}

// keep stores the brokers, and ends sessions with unused proxies.
func (c *Client) keep(brokers []broker) {
	used := map[string]bool{nameOf(c.access): true}
	for i := range brokers {
		used[nameOf(brokers[i].peer.endpoints)] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokers = brokers
	for name, p := range c.peers {
		if !used[name] {
			delete(c.peers, name)
			p.cancel()
		}
	}
}

// watch follows changes of the topic's brokers.
func (c *Client) watch() {
	for pause := time.Duration(0); background.Pause(c.ctx, pause) == nil; {
		pause = routeEvery
		if err := c.findBrokers(c.ctx); err != nil {
			pause = routePause
			c.log.Debug("rocketmq: check the topic", "topic", c.role.Topic, "error", err)
		}
	}
}

// known returns the present brokers. Before the first answer of a proxy, it
// asks for them.
func (c *Client) known(ctx context.Context) ([]broker, error) {
	c.mu.Lock()
	now := c.brokers
	c.mu.Unlock()
	if len(now) > 0 {
		return now, nil
	}
	if err := c.findBrokers(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.brokers, nil
}

// Close informs the proxies and ends the sessions. It waits until the context
// ends at most.
func (c *Client) Close(ctx context.Context) error {
	if c.ctx.Err() != nil {
		return nil
	}
	c.cancel()
	err := background.CallWithin(ctx, func() error {
		c.tasks.Wait() // after this, watch makes no peer
		c.mu.Lock()
		peers := maps.Clone(c.peers)
		c.mu.Unlock()
		var errs []error
		for _, p := range peers {
			errs = append(errs, p.leave(ctx))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("rocketmq: close: %w", err)
	}
	return nil
}
