package pulsarlink

import (
	"context"
	"fmt"
	"sync"
)

// life is a producer or a consumer: of use until it has ended.
type life interface {
	comparable
	isDone() bool
}

// cell holds a life, and the next one when it has ended.
type cell[T life] struct {
	mu      sync.Mutex
	value   T             // the zero value while there is none
	err     error         // why there is none
	changed chan struct{} // closed when value is set; nil if nobody waits
}

// set replaces the value. The zero value takes it away, for a reason.
func (c *cell[T]) set(value T, err error) {
	var none T
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value, c.err = value, err
	if value != none && c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// get is the zero value while there is none.
func (c *cell[T]) get() T {
	var none T
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.value != none && c.value.isDone() {
		return none
	}
	return c.value
}

// await waits for a value until ctx ends, or ended is closed.
func (c *cell[T]) await(ctx context.Context, ended <-chan struct{}) (T, error) {
	var none T
	for {
		c.mu.Lock()
		value, err := c.value, c.err
		isThere := value != none && !value.isDone()
		if !isThere && c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		if isThere {
			return value, nil
		}
		select {
		case <-changed:
		case <-ended:
			return none, errClosed
		case <-ctx.Done():
			if err == nil {
				return none, fmt.Errorf("pulsar: wait for a connection: %w", ctx.Err())
			}
			return none, fmt.Errorf("wait for a connection: %w; gave up: %w", err, ctx.Err())
		}
	}
}

// isClosed reports whether a channel of signals is.
func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
