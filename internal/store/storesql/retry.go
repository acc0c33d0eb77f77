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
	// maxRereads is how often a change is retried after others changed the rows that it read.
	// Then it returns store.ErrConflict.
	maxRereads = 3
	// maxContended is how often a change is retried after the database rolled it back. The
	// database resolves a deadlock by rolling one transaction back, so a few retries suffice
	// unless many transactions meet again and again.
	maxContended = 10
	// The random pause before a retry grows up to this, so that the transactions do not meet
	// again.
	maxPause = 50 * time.Millisecond
)

// tries counts the failed runs of a transaction.
type tries struct{ rereads, contended int }

// after returns nil if the transaction may be run again, or the error to return.
func (n *tries) after(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errVersion):
		if n.rereads++; n.rereads > maxRereads {
			return store.ErrConflict
		}
	case errors.Is(err, errTaken):
		if n.rereads++; n.rereads > maxRereads {
			return err // no other transaction was involved: the data is at fault
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

func pause(ctx context.Context, d time.Duration) error {
	if err := background.Pause(ctx, rand.N(d)); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}
