package shopapi

import (
	"context"
	"errors"
	"time"
)

const (
	// pingTimeout bounds a check of a dependency. askTimeout bounds a check that
	// ignores its deadline, so that /readyz answers within a second.
	pingTimeout = 600 * time.Millisecond
	askTimeout  = 700 * time.Millisecond
	// pingGoodFor is how long a result is shared. A failure must show at the load
	// balancer's next check. Any client may call /readyz, so many calls must not
	// cause many checks.
	pingGoodFor = 200 * time.Millisecond
)

var errHangs = errors.New("a question has no answer yet")

// probe checks a dependency, one check at a time; all callers share the result. A check
// runs to its end even if its callers are gone: a driver drops the connection of a
// cancelled call and must then open another.
type probe struct {
	ping func(ctx context.Context) error
	turn chan struct{} // held while a check runs
	err  error
	at   time.Time
}

func newProbe(ping func(ctx context.Context) error) *probe {
	return &probe{ping: ping, turn: make(chan struct{}, 1)}
}

// Ask returns the dependency's health, at most pingGoodFor old, within askTimeout. A check
// that does not return in time, such as one of a disk, is an error.
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
