package storesql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"seckill/internal/background"
	"seckill/internal/store"
)

const (
	// maxRereads is how often a change is tried again after others changed what
	// it rests on, before it is store.ErrConflict.
	maxRereads = 3
	// maxContended is how often it is tried again after the database made it
	// give way. A deadlock is resolved at once by one of the two giving way, so
	// a few are enough unless many meet again and again.
	maxContended = 10
	// The pause before that grows up to this, and is random: those who met shall
	// not meet again.
	maxPause = 50 * time.Millisecond
)

// tries counts how often a transaction was run in vain.
type tries struct{ rereads, contended int }

// after returns nil when the transaction may be run again, or what to say.
func (n *tries) after(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errVersion):
		if n.rereads++; n.rereads > maxRereads {
			return store.ErrConflict
		}
	case errors.Is(err, errTaken):
		if n.rereads++; n.rereads > maxRereads {
			return err // nobody was quicker: it is the data
		}
	case errors.Is(err, errContended):
		if n.contended++; n.contended > maxContended {
			return fmt.Errorf("%w: %w", store.ErrConflict, err)
		}
		return pause(ctx, min(maxPause, time.Millisecond<<n.contended))
	default:
		return err
	}
	return nil
}

// pause waits for up to d.
func pause(ctx context.Context, d time.Duration) error {
	if err := background.Pause(ctx, rand.N(d)); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}
