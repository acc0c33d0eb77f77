package purchase

import (
	"context"
	"errors"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/recovery"
	"seckill/internal/store"
)

const (
	// dualWriters write at once. All batches of a product go to the same one, or
	// they would lose the optimistic lock to each other.
	dualWriters = 2
	// dualQueue bounds the batches that wait for a writer; dualLate is how long
	// one may have waited and still be worth an attempt: the worker has it in
	// hand by then.
	dualQueue = 64
	dualLate  = 500 * time.Millisecond
	// dualTimeout bounds one attempt, dualClaims its size.
	dualTimeout = 2 * time.Second
	dualClaims  = 500
)

// Confirmer makes orders of claims.
type Confirmer interface {
	Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error)
}

// DualWriteResult is what became of an immediate attempt to write a batch.
type DualWriteResult string

// The results; after all but the first the batch is left to the worker.
const (
	DualWriteConfirmed DualWriteResult = "confirmed"
	DualWriteFailed    DualWriteResult = "failed" // the store did not take it, or its epoch is over
	DualWriteLate      DualWriteResult = "late"   // it waited too long for a writer
	DualWriteFull      DualWriteResult = "full"   // too many waited before it
)

// DualWriteResults lists all of them.
var DualWriteResults = []DualWriteResult{DualWriteConfirmed, DualWriteFailed, DualWriteLate, DualWriteFull}

// dualWriter tries, once and in the background, to write what the ledger has
// accepted of dualwrite products. While the store keeps up, a row follows its
// answer within milliseconds. The batch's entry stays in the outbox and the worker comes to
// it all the same, so nothing is lost with what is left out here.
//
// It cannot sell twice, because it is the worker's own transaction, with the
// items of the entry as the ledger wrote it, and without a witness, for it
// acknowledges nothing:
//
//   - The worker finds the order's row and calls it a replay; or the worker was
//     first, and this attempt is the replay. The order number is unique.
//   - An attempt that comes after a recovery is of an older epoch and writes
//     nothing; one that comes before it is in the recovery's snapshot. The two
//     are told apart by the compare-and-set of the product's version. A ledger
//     ahead of its store is ErrEpoch, and writes nothing either.
//   - A claim that the worker parked loses its letter to the row; one whose
//     letter was discarded has a failed row, which is never revived.
//   - An order that was written here, cancelled and released before the worker
//     saw its entry: the replay of a dead row owes the release again, and the
//     ledger finds that it holds nothing any more (protocol 4).
//   - A claim that fails, over the limit or as a duplicate, is told by whoever
//     wrote its row, here or the worker.
//   - Too little stock is ErrShort and writes nothing; the worker will meet the
//     same and has the product recovered.
type dualWriter struct {
	stage *Stage
	queue chan attempt
}

type attempt struct {
	items []store.Item
	since time.Time
}

// startDualWriters starts the writers, unless they run. s.mu is held.
func (s *Stage) startDualWriters() {
	if s.dual[0] != nil || s.opt.Store == nil {
		return
	}
	for i := range s.dual {
		s.dual[i] = &dualWriter{stage: s, queue: make(chan attempt, dualQueue)}
		s.running.Add(1)
		go s.dual[i].run()
	}
}

// promised takes what one ledger step accepted to who remembers it, and to who
// writes it at once: before anybody is answered, so that no answer is
// forgotten. They get a copy, for the claims are the batcher's.
func (b *batcher) promised(step *ledger.Reserve, verdicts []ledger.Verdict, terms *seckill.Product) {
	var writer *dualWriter
	if terms.Strategy == seckill.StrategyDualWrite {
		writer = b.stage.dual[b.shard.Product%dualWriters] // its group was started after the writers
	}
	if writer == nil && b.stage.opt.Promises == nil {
		return
	}
	accepted := 0
	for i := range verdicts {
		if verdicts[i].Code == ledger.VerdictAccepted {
			accepted++
		}
	}
	if accepted == 0 {
		return
	}
	entry := seckill.Entry{
		ProductID: b.shard.Product, Group: b.shard.Group, Shard: b.shard.Index, Epoch: b.shard.Epoch, At: step.At,
		PriceCents: step.PriceCents, Currency: step.Currency, Name: step.Name, Limit: terms.PerUserLimit,
		Claims: make([]seckill.Claim, 0, accepted),
	}
	for i := range verdicts {
		if verdicts[i].Code == ledger.VerdictAccepted {
			entry.Claims = append(entry.Claims, step.Claims[i])
		}
	}
	if writer != nil {
		writer.offer(store.Items(&entry))
	}
	if b.stage.opt.Promises != nil {
		b.stage.opt.Promises.Remember(entry)
	}
}

func (d *dualWriter) offer(items []store.Item) {
	select {
	case d.queue <- attempt{items, time.Now()}:
	default:
		d.stage.opt.Reports.DualWrite(DualWriteFull)
	}
}

// run writes until the stage is closed; what waits then is the worker's.
func (d *dualWriter) run() {
	defer d.stage.running.Done()
	var next attempt // of another product than the ones before it
	for {
		if next.items == nil {
			select {
			case next = <-d.queue:
			case <-d.stage.stop:
				return
			}
		}
		next = d.write(next)
	}
}

// write writes a batch, together with those behind it that are of the same
// product, and returns the first that is not.
func (d *dualWriter) write(first attempt) (next attempt) {
	var items []store.Item
	batches := 0
	for a := first; a.items != nil; {
		if time.Since(a.since) > dualLate {
			d.stage.opt.Reports.DualWrite(DualWriteLate)
		} else {
			items = append(items, a.items...)
			batches++
		}
		if a = d.waiting(); a.items != nil && (a.items[0].ProductID != first.items[0].ProductID || len(items)+len(a.items) > dualClaims) {
			next = a
			break
		}
	}
	if batches == 0 {
		return next
	}
	result := DualWriteConfirmed
	if err := d.confirm(items); err != nil {
		result = DualWriteFailed
	}
	for range batches {
		d.stage.opt.Reports.DualWrite(result)
	}
	return next
}

// waiting is a batch that waits, if any.
func (d *dualWriter) waiting() attempt {
	select {
	case a := <-d.queue:
		return a
	default:
		return attempt{}
	}
}

var errOldEpoch = errors.New("the product was recovered since")

func (d *dualWriter) confirm(items []store.Item) error {
	ctx, cancel := context.WithTimeout(context.Background(), dualTimeout)
	defer cancel()
	outcomes, err := d.stage.opt.Store.Confirm(ctx, store.ConfirmRequest{
		ProductID: items[0].ProductID, Items: items, ExpireAfter: d.stage.opt.ExpireAfter,
	})
	if err != nil {
		return err
	}
	if failed := recovery.FailedPromises(items, outcomes); len(failed) > 0 {
		d.stage.opt.Reports.NotKept(items[0].ProductID, failed)
	}
	for _, outcome := range outcomes {
		if outcome == store.ConfirmOldEpoch {
			return errOldEpoch
		}
	}
	return nil
}
