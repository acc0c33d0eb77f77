package app

import (
	"context"
	"sync"
	"time"
)

const (
	// pingTimeout bounds what is asked of a part. It is below the patience of
	// those who ask, 700 ms, so that they are told the part's own error.
	pingTimeout = 600 * time.Millisecond
	// pingGoodFor is how long an answer is given to others too: short enough that
	// a part's end shows at the next look of whoever routes, long enough that
	// nobody who may ask the shop's /readyz, which is anybody, makes work of it.
	pingGoodFor = 200 * time.Millisecond
)

// probe asks a part how it is, one question at a time, and has everybody share
// the answer. A question that was begun is let finish, whoever has gone away: a
// driver whose call is given up drops the connection, and the next one opens
// another.
type probe struct {
	ping func(ctx context.Context) error

	mu   sync.Mutex
	last *reading // under way, or the newest
}

// reading is one question; err and at are written before done is closed.
type reading struct {
	done chan struct{}
	err  error
	at   time.Time
}

func newProbe(ping func(ctx context.Context) error) *probe { return &probe{ping: ping} }

// Ask reports how the part is, or was within pingGoodFor, and waits no longer
// than ctx allows.
func (p *probe) Ask(ctx context.Context) error {
	r := p.current()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// current is a reading that is under way or still good; if there is none, it
// begins one.
func (p *probe) current() *reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || p.last.stale() {
		p.last = &reading{done: make(chan struct{})}
		go p.last.take(p.ping)
	}
	return p.last
}

func (r *reading) take(ping func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	r.err = ping(ctx)
	r.at = time.Now()
	close(r.done)
}

func (r *reading) stale() bool {
	select {
	case <-r.done:
		return time.Since(r.at) > pingGoodFor
	default:
		return false
	}
}
