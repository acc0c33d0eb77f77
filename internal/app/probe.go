package app

import (
	"context"
	"errors"
	"time"
)

const (
	// pingTimeout bounds what is asked of a part, so that /readyz answers within a
	// second.
	pingTimeout = 600 * time.Millisecond
	// pingGoodFor is how long an answer is given to others too: short enough that
	// a part's end shows at the next look of whoever routes, long enough that
	// nobody who may ask the shop's /readyz, which is anybody, makes work of it.
	pingGoodFor = 200 * time.Millisecond
)

var errHangs = errors.New("the question before this one has no answer yet")

// probe asks a part how it is, one question at a time, and has everybody share
// the answer. A question that was begun is let finish, whoever has gone away: a
// driver whose call is given up drops the connection, and the next one opens
// another.
type probe struct {
	ping func(ctx context.Context) error
	turn chan struct{} // held by whoever asks, or takes the answer
	err  error
	at   time.Time
}

func newProbe(ping func(ctx context.Context) error) *probe {
	return &probe{ping: ping, turn: make(chan struct{}, 1)}
}

// Ask reports how the part is, or was within pingGoodFor, and returns within
// pingTimeout. If the question before hangs, such as on a disk, it is an error.
func (p *probe) Ask() error {
	select {
	case p.turn <- struct{}{}:
	case <-time.After(pingTimeout):
		return errHangs
	}
	defer func() { <-p.turn }()
	if time.Since(p.at) > pingGoodFor {
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		defer cancel()
		p.err = p.ping(ctx)
		p.at = time.Now()
	}
	return p.err
}
