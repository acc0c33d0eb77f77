package shopapi

import (
	"context"
	"errors"
	"time"
)

const (
	// pingTimeout bounds what is asked of a part, and askTimeout a question that
	// does not return by then, so that /readyz answers within a second.
	pingTimeout = 600 * time.Millisecond
	askTimeout  = 700 * time.Millisecond
	// pingGoodFor is how long an answer is given to others too: short enough that
	// a part's end shows at the next look of whoever routes, long enough that
	// nobody who may ask the shop's /readyz, which is anybody, makes work of it.
	pingGoodFor = 200 * time.Millisecond
)

var errHangs = errors.New("a question has no answer yet")

// probe asks a part how it is, one question at a time, and has everybody share
// the answer. A question that was begun is let finish, whoever has gone away: a
// driver whose call is given up drops the connection, and the next one opens
// another.
type probe struct {
	ping func(ctx context.Context) error
	turn chan struct{} // held as long as a question is under way
	err  error
	at   time.Time
}

func newProbe(ping func(ctx context.Context) error) *probe {
	return &probe{ping: ping, turn: make(chan struct{}, 1)}
}

// Ask reports how the part is, or was within pingGoodFor, and returns within
// askTimeout. If the part does not return from a question, such as one to a
// disk, that is an error.
func (p *probe) Ask() error {
	late := time.After(askTimeout)
	select {
	case p.turn <- struct{}{}:
	case <-late:
		return errHangs
	}
	if time.Since(p.at) <= pingGoodFor {
		defer func() { <-p.turn }()
		return p.err
	}
	answer := make(chan error, 1)
	go func() {
		defer func() { <-p.turn }()
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		defer cancel()
		p.err, p.at = p.ping(ctx), time.Now()
		answer <- p.err
	}()
	select {
	case err := <-answer:
		return err
	case <-late:
		return errHangs
	}
}
