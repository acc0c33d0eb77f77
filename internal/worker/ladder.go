package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/internal/alert"
	"seckill/internal/store"
)

const lettersPerRound = 100

// Climber retries parked claims and discards dead ones past their age. It
// shares a worker's settings, not its consumer.
type Climber struct{ *Worker }

// NewClimber makes a climber with the worker's settings.
func NewClimber(w *Worker) *Climber { return &Climber{w} }

// Round retries the letters whose time has come, once each, and discards dead
// ones past their age. Call it about once a second, in one place of the
// cluster (twice at once is harmless: Confirm is idempotent).
func (w *Climber) Round(ctx context.Context) error {
	letters, err := w.store.LettersDue(ctx, lettersPerRound)
	if err != nil {
		return err
	}
	var errs []error // one product's recovery must not hold up another's letters
	for _, letter := range letters {
		err := w.climbOne(ctx, letter)
		if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, err)
	}
	_, err = w.store.DiscardDead(ctx, w.opt.DiscardAfter, lettersPerRound)
	return errors.Join(append(errs, err)...)
}

// climbOne tries a letter. An outage of the store ends the round and burns no
// attempt; a store that is short means recover, and burns none either.
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
		return nil
	case errors.Is(err, store.ErrEpoch):
		w.opt.OnAlert(alert.Disagree, item.ProductID, err)
		return nil
	case err == nil && outcomes[0] == store.ConfirmOldEpoch:
		outcome, err := w.adopt(ctx, []store.Item{item})
		for _, failure := range outcome.Failed {
			w.tellFailed(&letter, failure.Reason)
		}
		return err
	case err == nil && outcomes[0] == store.ConfirmFailed:
		w.tellFailed(&letter, "over the limit, or the duplicate of another order")
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
