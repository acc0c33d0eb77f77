package challenge

import (
	"context"
	"time"

	"seckill"
)

// gate bounds how many callers work at once, how many wait, and how long they
// wait. It refuses all others at once with too_hot. Work that costs milliseconds
// of a core, or a connection to the shop's server, must not pile up.
type gate struct {
	slots    chan struct{}
	line     chan struct{}
	patience time.Duration
}

func newGate(atOnce, waiting int, patience time.Duration) *gate {
	return &gate{slots: make(chan struct{}, atOnce), line: make(chan struct{}, waiting), patience: patience}
}

var errCrowded = &seckill.Error{Code: seckill.CodeTooHot}

// enter waits for a slot. The caller must leave it again.
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
