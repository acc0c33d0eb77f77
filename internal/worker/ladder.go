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
	retryAtOnce     = 4 // products
	// retryTimeout bounds the adoption of one letter of an older epoch, which
	// needs the ledger.
	retryTimeout = 3 * time.Second
)

// Retrier retries parked claims, and discards dead letters after DiscardAfter.
// It uses the settings of a worker, and consumes nothing.
type Retrier struct {
	*Worker
	postponed background.Postponed[uint32] // products whose ledger did not answer
}

// NewRetrier makes a retrier with the settings of the worker.
func NewRetrier(w *Worker) *Retrier { return &Retrier{Worker: w} }

// Round retries each due letter once, and discards old dead letters. If a
// product fails, the letters of other products go on. Call it about once a
// second, on one instance. Two calls at once are harmless, because Confirm is
// idempotent.
func (w *Retrier) Round(ctx context.Context) error {
	roundCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := background.Work[uint32, store.Letter]{
		Postponed: &w.postponed, AtOnce: retryAtOnce, Due: w.store.LettersDue, Limit: lettersPerRound,
		Key: func(l *store.Letter) uint32 { return l.Item.ProductID },
		Do: func(ctx context.Context, _ uint32, letters []store.Letter) error {
			err := w.retryLetters(ctx, letters)
			if errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked) && !errors.Is(err, background.ErrNoAnswer) {
				cancel(err) // an outage of the store stops all products
			}
			return err
		},
	}.Round(roundCtx)
	if roundCtx.Err() != nil {
		return err
	}
	_, discarded := w.store.DiscardDead(ctx, w.opt.DiscardAfter, lettersPerRound)
	return errors.Join(err, discarded)
}

// retryLetters tries letters of one product, until the ledger or the store is
// away.
func (w *Retrier) retryLetters(ctx context.Context, letters []store.Letter) error {
	var errs []error
	var later error
	for _, letter := range letters {
		err := w.retryOne(ctx, letter)
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

// retryOne tries one letter. If the store is away, the round ends. If the store
// is short, the product is due for recovery, and the letter returns ErrLater
// so that it does not hide the letters behind it. Neither case counts as an
// attempt.
func (w *Retrier) retryOne(ctx context.Context, letter store.Letter) error {
	item := letter.Item
	item.LetterID = letter.ID
	outcomes, err := w.store.Confirm(ctx, store.ConfirmRequest{
		ProductID: item.ProductID, Items: []store.Item{item}, ExpireAfter: w.opt.ExpireAfter,
	})
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return err
	case errors.Is(err, store.ErrShort):
		w.requestRecovery(ctx, item.ProductID, item.Epoch, err)
		return background.ErrLater
	case errors.Is(err, store.ErrEpoch):
		w.opt.OnAlert(alert.Disagree, item.ProductID, err)
		return background.ErrLater
	case err == nil && outcomes[0] == store.ConfirmOldEpoch:
		var outcome recovery.Outcome
		err := background.Within(ctx, retryTimeout, func(ctx context.Context) (err error) {
			outcome, err = w.adopt(ctx, []store.Item{item})
			return err
		})
		for _, failure := range outcome.Failed {
			w.reportParkedFailed(&letter, failure.Reason)
		}
		return err
	case err == nil && outcomes[0].FailedFor() != "":
		w.reportParkedFailed(&letter, outcomes[0].FailedFor())
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

// reportParkedFailed logs and alerts that a parked claim ended as a failed
// order: its buyer was promised one, and has waited longer than others.
func (w *Retrier) reportParkedFailed(letter *store.Letter, reason string) {
	no, product := letter.Item.Claim.OrderNo, letter.Item.ProductID
	w.opt.Logger.Warn("parked claim failed", "order_no", no.String(), "product", product, "reason", reason)
	w.opt.OnAlert(alert.ParkedFailed, product, fmt.Errorf("order %s, letter %d: %s", no, letter.ID, reason))
}
