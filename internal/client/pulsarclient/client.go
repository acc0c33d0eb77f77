package pulsarclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Client has one connection to each broker that it needs. It connects on first
// use, and again after a connection was lost.
//
// Methods are safe for concurrent use.
type Client struct {
	opt Options
	log *slog.Logger

	keepAlive   time.Duration
	lastID      atomic.Uint64 // last id of a request, producer or consumer
	lastWorking atomic.Int64  // index of the address that worked last
	sizeLimit   atomic.Int64  // size limit of messages that a broker last announced

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	conns map[target]*pooled
}

// pooled is a connection, or an attempt to make one.
type pooled struct {
	ready chan struct{} // closed when conn or err is set
	conn  *conn
	err   error
}

func (p *pooled) isOfUse() bool {
	select {
	case <-p.ready:
		return p.err == nil && !p.conn.isDone()
	default:
		return true
	}
}

// NewClient makes a client, which connects on first use. log is for diagnosis.
func (o Options) NewClient(log *slog.Logger) *Client {
	c := &Client{opt: o, log: log, keepAlive: keepAlive, conns: make(map[target]*pooled)}
	c.lastWorking.Store(rand.Int64N(int64(len(o.Addresses))))
	c.sizeLimit.Store(defaultMaxMessage)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *Client) nextID() uint64 { return c.lastID.Add(1) }

// maxMessage returns the last known limit of the broker.
func (c *Client) maxMessage() int { return int(c.sizeLimit.Load()) }

// connect returns the connection to a broker. Concurrent callers share one
// attempt.
func (c *Client) connect(ctx context.Context, at target) (*conn, error) {
	c.mu.Lock()
	p := c.conns[at]
	if p == nil || !p.isOfUse() {
		if c.ctx.Err() != nil {
			c.mu.Unlock()
			return nil, errClosed
		}
		p = &pooled{ready: make(chan struct{})}
		c.conns[at] = p
		c.tasks.Go(func() {
			if p.conn, p.err = c.dial(c.ctx, at); p.err == nil {
				c.sizeLimit.Store(int64(p.conn.maxMessage))
			}
			close(p.ready)
		})
	}
	c.mu.Unlock()
	select {
	case <-p.ready:
		return p.conn, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("pulsar: connect to %s: %w", at.address, ctx.Err())
	}
}

// anyBroker returns a connection to one of the configured addresses.
func (c *Client) anyBroker(ctx context.Context) (*conn, error) {
	var errs []error
	for i := range c.opt.Addresses {
		at := (int(c.lastWorking.Load()) + i) % len(c.opt.Addresses)
		address := c.opt.Addresses[at]
		n, err := c.connect(ctx, target{address, address})
		if err == nil {
			c.lastWorking.Store(int64(at))
			return n, nil
		}
		errs = append(errs, err)
		if isRefusedHere(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// partitions returns the names of a topic's partitions. A topic without
// partitions counts as one partition.
func (c *Client) partitions(ctx context.Context, topic string) ([]string, error) {
	n, err := c.anyBroker(ctx)
	if err != nil {
		return nil, err
	}
	id := c.nextID()
	a, err := n.request(ctx, id, encodePartitions(topic, id))
	switch {
	case err != nil:
		return nil, err
	case a.count == 0:
		return []string{topic}, nil
	case a.count > maxPartitions:
		return nil, fmt.Errorf("pulsar: topic %s: %w: %d, over %d", topic, errPartitions, a.count, maxPartitions)
	}
	names := make([]string, a.count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-partition-%d", topic, i)
	}
	return names, nil
}

// owner returns a connection to the broker that owns a partition.
func (c *Client) owner(ctx context.Context, partition string) (*conn, error) {
	n, err := c.anyBroker(ctx)
	if err != nil {
		return nil, err
	}
	service := n.at.address
	authority := false
	for range maxRedirects {
		id := c.nextID()
		a, err := n.request(ctx, id, encodeLookup(partition, id, authority))
		if err != nil {
			return nil, fmt.Errorf("find the broker of %s: %w", partition, err)
		}
		at, err := c.targetOf(&a, service)
		if err != nil {
			return nil, err
		}
		if n, err = c.connect(ctx, at); err != nil || a.outcome == lookupConnect {
			return n, err
		}
		authority = a.authority
	}
	return nil, fmt.Errorf("pulsar: more than %d brokers redirect the lookup of %s", maxRedirects, partition)
}

// targetOf returns the broker that a lookup names. service is the address to
// connect to if it is a proxy.
func (c *Client) targetOf(a *answer, service string) (target, error) {
	named := a.url
	if c.opt.TLS != nil {
		named = a.urlTLS
	}
	parsed, err := url.Parse(named)
	if err != nil || parsed.Port() == "" {
		return target{}, fmt.Errorf("pulsar: the broker named a broker without an address: %q", named)
	}
	if a.proxied {
		return target{parsed.Host, service}, nil
	}
	return target{parsed.Host, parsed.Host}, nil
}

// Close ends all connections. It waits until the context ends at most.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.cancel()
	conns := c.conns
	c.conns = make(map[target]*pooled)
	c.mu.Unlock()
	return wait(ctx, func() {
		for _, p := range conns {
			<-p.ready // short, because the context has ended
			if p.err == nil {
				p.conn.end(errClosed)
			}
		}
		c.tasks.Wait()
	})
}
