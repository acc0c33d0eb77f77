package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/recovery"
	"seckill/internal/store"
)

const (
	lettersPerRound = 100
	climbAtOnce     = 4 // products
	// climbTimeout bounds the adoption of one letter of an older epoch, which
	// needs the ledger.
	climbTimeout = 3 * time.Second
)

// Climber retries parked claims and discards dead ones past their age. It
// shares a worker's settings, not its consumer.
type Climber struct {
	*Worker
	aside background.Shelf[uint32] // products whose ledger did not answer
}

// NewClimber makes a climber with the worker's settings.
func NewClimber(w *Worker) *Climber { return &Climber{Worker: w} }

// Round retries the letters whose time has come, once each, and discards dead
// ones past their age. What one product cannot do holds up no other's letters.
// Call it about once a second, in one place of the cluster (twice at once is
// harmless: Confirm is idempotent).
func (w *Climber) Round(ctx context.Context) error {
	climbing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := background.Work[uint32, store.Letter]{
		Shelf: &w.aside, AtOnce: climbAtOnce, Due: w.store.LettersDue, Limit: lettersPerRound,
		Key: func(l *store.Letter) uint32 { return l.Item.ProductID },
		Do: func(ctx context.Context, _ uint32, letters []store.Letter) error {
			err := w.climb(ctx, letters)
			if errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked) && !errors.Is(err, background.ErrNoAnswer) {
				cancel(err) // an outage of the store is everybody's
			}
			return err
		},
	}.Round(climbing)
	if climbing.Err() != nil {
		return err
	}
	_, discarded := w.store.DiscardDead(ctx, w.opt.DiscardAfter, lettersPerRound)
	return errors.Join(err, discarded)
}

// climb tries letters of one product, until the ledger or the store is away.
func (w *Climber) climb(ctx context.Context, letters []store.Letter) error {
	var errs []error
	var later error
	for _, letter := range letters {
		err := w.climbOne(ctx, letter)
		if errors.Is(err, background.ErrLater) {
			later = err
			continue
		}
		errs = append(errs, err)
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, background.ErrNoAnswer) || ctx.Err() != nil {
			break
		}
	}
	return cmp.Or(errors.Join(errs...), later)
}

// climbOne tries a letter. An outage of the store ends the round and burns no
// attempt; a store that is short means recover, and burns none either. Such a
// letter is ErrLater: it must not hide those behind it.
func (w *Climber) climbOne(ctx context.Context, letter store.Letter) error {
	item := letter.Item
	item.LetterID = letter.ID
	outcomes, err := w.store.Confirm(ctx, store.ConfirmRequest{
		ProductID: item.ProductID, Items: []store.Item{item}, ExpireAfter: w.opt.ExpireAfter,
	})
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return err
	case errors.Is(err, store.ErrShort):
		w.short(ctx, item.ProductID, item.Epoch, err)
		return background.ErrLater
	case errors.Is(err, store.ErrEpoch):
		w.opt.OnAlert(alert.Disagree, item.ProductID, err)
		return background.ErrLater
	case err == nil && outcomes[0] == store.ConfirmOldEpoch:
		var outcome recovery.Outcome
		err := background.Within(ctx, climbTimeout, func(ctx context.Context) (err error) {
			outcome, err = w.adopt(ctx, []store.Item{item})
			return err
		})
		for _, failure := range outcome.Failed {
			w.tellFailed(&letter, failure.Reason)
		}
		return err
	case err == nil && outcomes[0].FailedFor() != "":
		w.tellFailed(&letter, outcomes[0].FailedFor())
		return nil
	case err == nil:
		w.opt.Logger.Info("parked claim settled", "order_no", item.Claim.OrderNo.String(), "attempts", letter.Attempts+1)
		return nil
	}
	delay := time.Duration(-1)
	if letter.Attempts < len(w.opt.Ladder) {
		delay = w.opt.Ladder[letter.Attempts]
	} else {
		w.opt.OnAlert(alert.NoTriesLeft, item.ProductID, fmt.Errorf("order %s, dead letter %d: %w", item.Claim.OrderNo, letter.ID, err))
	}
	return w.store.LetterFailed(ctx, letter.ID, err.Error(), delay)
}

// tellFailed tells that a claim has ended as a failed order: its buyer was
// promised one, and has waited for it longer than others.
func (w *Climber) tellFailed(letter *store.Letter, reason string) {
	no, product := letter.Item.Claim.OrderNo, letter.Item.ProductID
	w.opt.Logger.Warn("parked claim failed", "order_no", no.String(), "product", product, "reason", reason)
	w.opt.OnAlert(alert.ParkedFailed, product, fmt.Errorf("order %s, letter %d: %s", no, letter.ID, reason))
}
