package challenge

import (
	"context"
	"time"

	"seckill"
)

// gate lets a bounded number in at once, and a bounded number wait for it, for
// a bounded time. Everybody else is told at once that it is too hot: work that
// costs milliseconds of a core, or a connection to somebody else's server, must
// not pile up behind a crowd.
type gate struct {
	slots    chan struct{}
	line     chan struct{}
	patience time.Duration
}

func newGate(atOnce, waiting int, patience time.Duration) *gate {
	return &gate{slots: make(chan struct{}, atOnce), line: make(chan struct{}, waiting), patience: patience}
}

var errCrowded = &seckill.Error{Code: seckill.CodeTooHot}

// enter returns when there is a slot, which the caller leaves again.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case g.line <- struct{}{}:
		defer func() { <-g.line }()
	default:
		return errCrowded
	}
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errCrowded
	case <-ctx.Done():
		return errCrowded
	}
}

func (g *gate) leave() { <-g.slots }
