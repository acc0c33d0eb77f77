// Package worker is stage ⑦: it turns reservations into orders at the pace of
// the store, with one transaction per batch and product.
//
//   - worker.go: receives and settles batches; confirm.go writes them; ack.go acknowledges
//   - hold.go: entries that wait for a recovery; unsettled.go, maybe_stored.go: entries in hand
//   - ladder.go: retries of parked claims, dead letters
//   - guard.go, older.go: a queue or a store that lost entries
//   - stray.go: copies from a broker; crew.go: several workers in one instance
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/background"
	"seckill/internal/fault"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/recovery"
	"seckill/internal/store"
)

const (
	storeDeadline = 10 * time.Second
	ackDeadline   = 5 * time.Second
	closeDeadline = 2 * time.Second
	minBackoff    = 50 * time.Millisecond
	maxBackoff    = 5 * time.Second
	idleWait      = time.Minute
)

// Store is the part of the store that a worker uses.
type Store interface {
	Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error)
	Fail(ctx context.Context, items []store.Item, reason string) error
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	Product(ctx context.Context, id uint32) (seckill.Product, error)
	Deleted(ctx context.Context, id uint32) (bool, error)
	CurrentProducts(ctx context.Context) ([]seckill.Product, error)
	Products(ctx context.Context, filter store.ProductFilter) ([]seckill.Product, error)
	BeginRebuild(ctx context.Context, id uint32, epoch uint64) error
	Witness(ctx context.Context) ([]queue.ID, error)
	WitnessLost(ctx context.Context, lost, kept []queue.ID) (bool, error)
	LettersDue(ctx context.Context, limit int, except ...uint32) ([]store.Letter, error)
	LetterFailed(ctx context.Context, id int64, reason string, delay time.Duration) error
	CloseLetter(ctx context.Context, id int64, epoch uint64) error
	DiscardDead(ctx context.Context, age time.Duration, limit int) (int, error)
}

// Source is where a worker receives deliveries: the outbox itself, or a
// relay.Line that a broker carries them over.
type Source interface {
	Consumer(ctx context.Context, name string) (queue.Consumer, error)
}

// Expiry expires orders when their time to pay has passed.
type Expiry interface {
	// Schedule returns at once. It only makes expiry faster: the store expires
	// every order.
	Schedule(product uint32, orders []seckill.OrderNo, payBefore time.Time)
}

// Options are a worker's settings.
type Options struct {
	Source        Source // nil: the queue
	Name          string // unique among running workers
	BatchSize     int    // claims in one transaction
	BatchWait     time.Duration
	RatePerSecond int // claims of all workers together (Crew.Share); 0: no limit
	Ladder        []time.Duration
	DiscardAfter  time.Duration
	ExpireAfter   time.Duration
	Logger        *slog.Logger
	Now           func() time.Time // the clock of the ledger, for adoptions
	Gatherer      recovery.Gatherer
	Expiry        Expiry // nil: the store alone expires orders
	// OnBatch gets the claims of every settled batch, the age of the oldest
	// entry, and the time taken.
	OnBatch func(claims int, lag, took time.Duration)
	// OnTrouble requests a recovery of the ledger of a product. The request is
	// already in the store. Product 0 means all products of the queue. OnTrouble
	// may be called again after the recovery, and must not block.
	OnTrouble func(product uint32, err error)
	// OnAlert reports a condition that an operator has to handle.
	OnAlert func(kind alert.Kind, product uint32, err error)
}

// Worker consumes the queue. Run it in one goroutine. Several workers may run
// on one queue.
type Worker struct {
	queue   queue.Queue
	store   Store
	adopter *recovery.Adopter
	guard   Guard
	opt     Options

	consumer    queue.Consumer
	witness     map[string]queue.ID
	held        holds
	unsettled   unsettled
	maybeStored maybeStored
	paceAt      time.Time    // when the rate allows the next batch
	sharers     atomic.Int64 // workers that share the rate
}

// New makes a worker.
func New(q queue.Queue, s Store, lanes ledger.Writer, opt Options) *Worker {
	if opt.Source == nil {
		opt.Source = q
	}
	w := &Worker{
		queue: q, store: s, opt: opt, adopter: &recovery.Adopter{Store: s, Lanes: lanes, Gatherer: opt.Gatherer, Now: opt.Now, ExpireAfter: opt.ExpireAfter},
		guard:   Guard{Queue: q, Store: s, OnTrouble: opt.OnTrouble},
		witness: make(map[string]queue.ID), held: holds{products: make(map[uint32]*held)},
		maybeStored: maybeStored{orders: make(map[seckill.OrderNo]bool)},
	}
	w.sharers.Store(1)
	return w
}

// Run works until ctx ends. Then it finishes the current transaction and hands
// the other entries back.
func (w *Worker) Run(ctx context.Context) error {
	w.maybeStored.clear()
	if err := w.start(ctx); err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
		defer cancel()
		if err := w.consumer.Close(closing); err != nil {
			w.opt.Logger.Warn("worker did not leave the queue cleanly", "error", err)
		}
		w.unsettled.clear()
	}()
	for ctx.Err() == nil {
		batch, err := w.gather(ctx)
		if err != nil {
			w.opt.Logger.Warn("queue not read", "error", err)
			_ = background.Pause(ctx, maxBackoff/10) // the loop checks ctx
			continue
		}
		if len(batch) > 0 {
			w.settle(ctx, batch)
		}
	}
	return nil
}

// start reads the witness and joins the queue, and repeats until both succeed:
// a worker that gave up would leave every promise queued.
func (w *Worker) start(ctx context.Context) error {
	join := func(ctx context.Context) error {
		ids, err := w.store.Witness(ctx)
		if err != nil {
			return err
		}
		w.raise(ids)
		w.consumer, err = w.opt.Source.Consumer(ctx, w.opt.Name)
		return err
	}
	if err := w.join(ctx, join); err != nil {
		return err
	}
	// Notice now that a queue was set back or replaced, and not with the first
	// order of the next sale.
	checking, cancel := context.WithTimeout(ctx, ackDeadline)
	defer cancel()
	if err := w.queueLost(checking); err != nil {
		w.opt.Logger.Warn("witness not checked; the next acknowledgement will", "error", err)
	}
	if err := w.checkStore(checking); err != nil {
		w.opt.Logger.Warn("age of the store not checked; the next start will", "error", err)
	}
	return nil
}

// join repeats until the worker has joined the queue.
func (w *Worker) join(ctx context.Context, join func(context.Context) error) error {
	for {
		err := w.untilAvailable(ctx, join)
		if err == nil {
			return nil
		}
		w.opt.Logger.Warn("worker has not joined the queue yet", "error", err)
		if background.Pause(ctx, maxBackoff/10) != nil {
			return fmt.Errorf("stopped before the queue was joined: %w", err)
		}
	}
}

func (w *Worker) raise(ids []queue.ID) {
	for _, id := range ids {
		if id.Seq > w.witness[id.Stream].Seq {
			w.witness[id.Stream] = id
		}
	}
}

// gather receives up to one batch. It waits for the first entry, and then at
// most BatchWait for the rest. Held entries that are due fill at most half of
// the batch, so new entries do not starve.
func (w *Worker) gather(ctx context.Context) ([]queue.Delivery, error) {
	if err := w.pace(ctx); err != nil {
		return nil, nil
	}
	limit := w.batchLimit()
	batch := w.held.take(time.Now(), max(1, limit/2))
	if len(batch) > 0 {
		return w.gatherMore(ctx, batch, limit), nil
	}
	wait := idleWait
	if next := w.held.next(); !next.IsZero() {
		wait = time.Until(next)
	}
	if w.full() {
		_ = background.Pause(ctx, wait) // the caller checks ctx
		return nil, nil
	}
	first, err := w.receive(ctx, wait, limit)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	return w.gatherMore(ctx, first, limit), nil
}

// gatherMore adds the entries that come within BatchWait. An error only ends
// the wait: the entries in hand must be settled, because no other consumer gets
// them.
func (w *Worker) gatherMore(ctx context.Context, batch []queue.Delivery, limit int) []queue.Delivery {
	until := time.Now().Add(w.opt.BatchWait)
	for claims := countClaims(batch); claims < limit && w.held.claims < maxHeld; claims = countClaims(batch) {
		more, err := w.receive(ctx, time.Until(until), limit-claims)
		batch = append(batch, more...)
		if err != nil {
			w.opt.Logger.Warn("queue not read; the batch goes without the rest", "error", err)
		}
		if err != nil || len(more) == 0 {
			break
		}
	}
	return batch
}

// receive waits for entries up to a time limit. If none comes, it returns no
// error. It holds the entries of products that already wait.
func (w *Worker) receive(ctx context.Context, wait time.Duration, limit int) ([]queue.Delivery, error) {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	got, err := w.consumer.Receive(bounded, limit)
	if err != nil && bounded.Err() != nil {
		err = nil
	}
	w.unsettled.received(got)
	return w.holdNew(got), err
}

// batchLimit returns small batches if a rate is set, so the flow stays smooth.
func (w *Worker) batchLimit() int {
	if w.opt.RatePerSecond == 0 {
		return w.opt.BatchSize
	}
	return max(1, min(w.opt.BatchSize, w.opt.RatePerSecond/10/int(w.sharers.Load())))
}

// pace waits until the rate allows the next batch.
func (w *Worker) pace(ctx context.Context) error {
	if w.opt.RatePerSecond == 0 {
		return nil
	}
	return background.Pause(ctx, time.Until(w.paceAt))
}

// spend counts claims against this worker's share of the rate. An idle worker
// saves up nothing.
func (w *Worker) spend(claims int) {
	if w.opt.RatePerSecond == 0 {
		return
	}
	if now := time.Now(); w.paceAt.Before(now) {
		w.paceAt = now
	}
	w.paceAt = w.paceAt.Add(time.Duration(claims) * time.Duration(w.sharers.Load()) * time.Second / time.Duration(w.opt.RatePerSecond))
}

// settle confirms a batch product by product, and acknowledges the settled
// entries. It holds the entries that cannot be settled now.
func (w *Worker) settle(ctx context.Context, batch []queue.Delivery) {
	started := time.Now()
	fault.Point("worker.after_receive")
	var done []queue.Delivery
	for _, deliveries := range byProduct(batch) {
		err := w.confirm(ctx, deliveries)
		if seckill.CodeNotFound.In(err) {
			err = w.unlessDeleted(ctx, deliveries, err)
		}
		if err == nil {
			done = append(done, deliveries...)
			w.unsettled.settled(deliveries)
			continue
		}
		if ctx.Err() != nil {
			break // stopping: the consumer hands the rest back
		}
		w.reportTrouble(ctx, deliveries, err)
		w.hold(deliveries, delayAfter(err))
	}
	if len(done) == 0 {
		return
	}
	claims := countClaims(done)
	w.spend(claims)
	fault.Point("worker.before_ack")
	w.ack(ctx, done)
	fault.Point("worker.after_ack")
	w.opt.OnBatch(claims, w.opt.Now().Sub(oldest(done)), time.Since(started))
}

func oldest(batch []queue.Delivery) time.Time {
	at := batch[0].Entry.At
	for i := range batch {
		if batch[i].Entry.At.Before(at) {
			at = batch[i].Entry.At
		}
	}
	return at
}

// reportTrouble logs why entries wait. If the store is short, it requests a recovery.
func (w *Worker) reportTrouble(ctx context.Context, deliveries []queue.Delivery, cause error) {
	product, epoch := deliveries[0].Entry.ProductID, uint64(0)
	for i := range deliveries {
		epoch = max(epoch, deliveries[i].Entry.Epoch) // older ones are adopted, and cannot be short
	}
	w.opt.Logger.Warn("entries wait", "product", product, "entries", len(deliveries), "error", cause)
	if errors.Is(cause, store.ErrShort) {
		w.requestRecovery(ctx, product, epoch, cause)
	}
	if errors.Is(cause, store.ErrShort) || errors.Is(cause, store.ErrEpoch) {
		w.opt.OnAlert(alert.Disagree, product, cause)
	}
	if seckill.CodeNotFound.In(cause) {
		w.opt.OnAlert(alert.NoProduct, product, cause)
	}
}

// requestRecovery requests a recovery of a product whose store has fewer units
// than the ledger promised. Reading the ledger does not show that. The request
// names the epoch of the promise. Entries are tried again during a recovery, so a finished one
// must not be requested again.
func (w *Worker) requestRecovery(ctx context.Context, product uint32, epoch uint64, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeDeadline)
	defer cancel()
	if err := w.store.BeginRebuild(ctx, product, epoch); err != nil {
		w.opt.Logger.Warn("recovery of the product not requested; its entries are tried again", "product", product, "error", err)
	}
	w.opt.OnTrouble(product, cause)
}

// untilAvailable repeats do with backoff while the store is unavailable, so an
// outage counts as no attempt. It does not repeat for a locked row: other
// products need not wait for that.
func (w *Worker) untilAvailable(ctx context.Context, do func(context.Context) error) error {
	backoff := minBackoff
	for {
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeDeadline)
		err := do(attempt)
		cancel()
		if err == nil || !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrLocked) {
			return err
		}
		w.opt.Logger.Warn("store unavailable; the worker waits", "error", err, "for", backoff)
		if err := background.Pause(ctx, backoff); err != nil {
			return fmt.Errorf("stopped while the store was unavailable: %w", err)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

func byProduct(batch []queue.Delivery) [][]queue.Delivery {
	index := make(map[uint32]int)
	var groups [][]queue.Delivery
	for _, d := range batch {
		i, ok := index[d.Entry.ProductID]
		if !ok {
			i = len(groups)
			index[d.Entry.ProductID] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

func countClaims(batch []queue.Delivery) (n int) {
	for i := range batch {
		n += len(batch[i].Entry.Claims)
	}
	return n
}
