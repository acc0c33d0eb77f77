package sink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lazy is a target that is opened by its first delivery. A broker that is down
// while the engine starts must not keep the engine from starting: deliveries
// fail until it can be opened.
type Lazy struct {
	// Open connects, within the context's deadline.
	Open func(ctx context.Context) (Target, error)

	mu     sync.Mutex
	target Target
	last   error // of an Open that ended at lastAt
	lastAt time.Time
	closed bool
}

var errClosed = errors.New("sink is closed")

// Deliver opens the target if need be, and delivers.
func (l *Lazy) Deliver(ctx context.Context, m *Message) (string, error) {
	target, err := l.opened(ctx)
	if err != nil {
		return "", fmt.Errorf("open sink: %w", err)
	}
	return target.Deliver(ctx, m)
}

func (l *Lazy) opened(ctx context.Context) (Target, error) {
	began := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.target != nil {
		return l.target, nil
	}
	target, err := l.Open(ctx)
	switch {
	case err == nil:
		l.target = target
	case errors.Is(err, context.DeadlineExceeded) && reason(err) == nil && l.lastAt.After(began):
		err = l.last // this delivery's time went by while another one tried to open
	default:
		l.last, l.lastAt = err, time.Now()
	}
	return target, err
}

// Close closes the target, if it was opened.
func (l *Lazy) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.target == nil {
		return nil
	}
	return l.target.Close(ctx)
}
