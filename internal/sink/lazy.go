package sink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lazy is a target that the first delivery opens. A broker that is down must
// not prevent the start of the engine: deliveries fail until the target is
// open.
type Lazy struct {
	// Open connects, within the context's deadline.
	Open func(ctx context.Context) (Target, error)

	mu     sync.Mutex
	target Target
	last   error // of the Open that ended at lastAt
	lastAt time.Time
	closed bool
}

var errClosed = errors.New("sink is closed")

// Deliver opens the target if necessary, and delivers.
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
		err = l.last // this delivery timed out while another one tried to open
	default:
		l.last, l.lastAt = err, time.Now()
	}
	return target, err
}

// Close closes the target, if it is open.
func (l *Lazy) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.target == nil {
		return nil
	}
	return l.target.Close(ctx)
}
