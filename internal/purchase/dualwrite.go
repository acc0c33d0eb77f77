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
	// dualWriters is the number of concurrent writers. All batches of a product go
	// to the same one; otherwise they would conflict at the optimistic lock.
	dualWriters = 2
	// dualQueue bounds the batches that wait for a writer. dualLate bounds the wait:
	// after it the worker handles the batch, so an attempt is not worth it.
	dualQueue = 64
	dualLate  = 500 * time.Millisecond
	// dualTimeout bounds one attempt, dualClaims its size.
	dualTimeout = 2 * time.Second
	dualClaims  = 500
)

// Confirmer writes orders for claims.
type Confirmer interface {
	Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error)
}

// DualWriteResult is the result of an immediate attempt to write a batch.
type DualWriteResult string

// The results. After all but the first, the worker writes the batch.
const (
	DualWriteConfirmed DualWriteResult = "confirmed"
	DualWriteFailed    DualWriteResult = "failed" // the store failed, or the epoch is over
	DualWriteLate      DualWriteResult = "late"   // it waited too long for a writer
	DualWriteFull      DualWriteResult = "full"   // too many batches waited
)

// DualWriteResults lists all results.
var DualWriteResults = []DualWriteResult{DualWriteConfirmed, DualWriteFailed, DualWriteLate, DualWriteFull}

// dualWriter tries once, in the background, to write the accepted claims of dualwrite
// products. While the store keeps up, the row follows the answer within milliseconds.
// The entry stays in the outbox for the worker, so skipping an attempt loses nothing.
//
// It cannot sell twice. It runs the worker's transaction with the items of the entry
// as the ledger wrote it. It passes no witness, because it acknowledges nothing.
//
//   - If the worker finds the order's row, that is a replay. If the worker was
//     first, this attempt is the replay. The order number is unique.
//   - An attempt after a recovery has an older epoch and writes nothing. An
//     attempt before it is in the recovery's snapshot. The compare-and-set of the
//     product's version decides between the two. If the ledger is ahead of its
//     store, ErrEpoch also writes nothing.
//   - If the worker parked the claim, the row replaces the letter. If the letter
//     was discarded, there is a failed row, which is never revived.
//   - If the order was cancelled and released before the worker saw its entry, the
//     replay of the dead row requests the release again. The ledger then holds
//     nothing for it (protocol 4).
//   - If a claim fails, over the limit or as a duplicate, the one that wrote its row
//     reports it: this attempt or the worker.
//   - If there is too little stock, ErrShort writes nothing. The worker gets the
//     same error and requests a recovery.
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

// promised passes the accepted claims of a step to Promises and to the dual writer. It
// does so before any buyer is answered, so that no promise is forgotten. They get a
// copy, because the batcher reuses the claims.
func (b *batcher) promised(step *ledger.Reserve, verdicts []ledger.Verdict, terms *seckill.Product) {
	var writer *dualWriter
	if terms.Strategy == seckill.StrategyDualWrite {
		writer = b.stage.dual[b.shard.Product%dualWriters] // startGroup started the writers first
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

// run writes until the stage is closed. The worker writes the batches that still wait.
func (d *dualWriter) run() {
	defer d.stage.running.Done()
	var next attempt // a batch of another product than the ones before it
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

// write writes a batch together with the following batches of the same product. It
// returns the first batch of another product.
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

// waiting returns a waiting batch, if any.
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
