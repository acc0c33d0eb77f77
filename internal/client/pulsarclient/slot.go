package pulsarclient

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/internal/background"
)

// life is a producer or a consumer, usable until it has ended.
type life interface {
	comparable
	// begin is called when the slot has it.
	begin()
	ended() <-chan struct{}
	// leave ends it, and returns why it has ended.
	leave() error
}

// slot holds a producer or a consumer, and after its end the next one.
type slot[T life] struct {
	mu      sync.Mutex
	value   T             // zero while there is none
	err     error         // why there is none
	changed chan struct{} // closed when value is set; nil if no caller waits
}

// keep keeps an open one in the slot until ctx ends. first may already be open.
func (s *slot[T]) keep(ctx context.Context, first T, open func(context.Context) (T, error)) {
	var none T
	now, pause := first, minBackoff
	for {
		began := time.Now()
		if now == none {
			var err error
			if now, err = open(ctx); err != nil {
				s.set(none, err)
			}
		}
		if now != none {
			s.set(now, nil)
			now.begin()
			select {
			case <-now.ended():
			case <-ctx.Done():
			}
			s.set(none, now.leave())
			now = none
		}
		if time.Since(began) > goodLife {
			pause = minBackoff
		}
		if background.Pause(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, maxBackoff)
	}
}

// set replaces the value. The zero value removes it, with a reason.
func (s *slot[T]) set(value T, err error) {
	var none T
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.err = value, err
	if value != none && s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// get returns the value, or zero if there is none.
func (s *slot[T]) get() T {
	var none T
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value != none && isClosed(s.value.ended()) {
		return none
	}
	return s.value
}

// await waits for a value until ctx ends, or ended is closed.
func (s *slot[T]) await(ctx context.Context, ended <-chan struct{}) (T, error) {
	var none T
	for {
		s.mu.Lock()
		value, err := s.value, s.err
		isThere := value != none && !isClosed(value.ended())
		if !isThere && s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
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

// isClosed reports whether a signal channel is closed.
func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
