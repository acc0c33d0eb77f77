// Package worker is stage ⑦: it turns reservations into orders at the store's
// own pace, one transaction per batch and product.
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
	backoffLeast  = 50 * time.Millisecond
	backoffMost   = 5 * time.Second
	idleWait      = time.Minute
)

// Store is what a worker writes.
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

// Source is where a worker's deliveries come from: the outbox itself, or a
// relay.Line that a broker carries them over.
type Source interface {
	Consumer(ctx context.Context, name string) (queue.Consumer, error)
}

// Expiry has orders expire when their time to pay has passed.
type Expiry interface {
	// Schedule returns at once. It is an extra: the store expires every order.
	Schedule(product uint32, orders []seckill.OrderNo, payBefore time.Time)
}

// Options are a worker's settings.
type Options struct {
	Source        Source // nil is the queue
	Name          string // unique among the living
	BatchSize     int    // claims in one transaction
	BatchWait     time.Duration
	RatePerSecond int // claims of all workers together (Crew.Share); 0 is as fast as the store
	Ladder        []time.Duration
	DiscardAfter  time.Duration
	ExpireAfter   time.Duration
	Logger        *slog.Logger
	Now           func() time.Time // the ledger's clock, for adoptions
	Gatherer      recovery.Gatherer
	Expiry        Expiry // nil is none
	// OnBatch sees every confirmed batch: claims, and the age of the oldest.
	OnBatch func(claims int, lag, took time.Duration)
	// OnTrouble is told that a product's ledger must be recovered, for which the
	// worker has marked it in the store; product 0 means every product of the
	// queue. It may be told again after the recovery, and must not block.
	OnTrouble func(product uint32, err error)
	// OnAlert is told what an operator has to look at.
	OnAlert func(kind alert.Kind, product uint32, err error)
}

// Worker consumes the queue. Run it in one goroutine; several workers may run
// on one queue.
type Worker struct {
	queue   queue.Queue
	store   Store
	adopter *recovery.Adopter
	guard   Guard
	opt     Options

	consumer queue.Consumer
	witness  map[string]queue.ID
	held     holds
	hand     hand
	doubts   doubts
	paceAt   time.Time    // with a rate: when the next batch may begin
	sharers  atomic.Int64 // workers that divide the rate
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
		doubts: doubts{orders: make(map[seckill.OrderNo]bool)},
	}
	w.sharers.Store(1)
	return w
}

// Run works until ctx ends, and then finishes the transaction in hand and
// hands back the rest.
func (w *Worker) Run(ctx context.Context) error {
	w.doubts.clear()
	if err := w.start(ctx); err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
		defer cancel()
		if err := w.consumer.Close(closing); err != nil {
			w.opt.Logger.Warn("worker did not leave the queue cleanly", "error", err)
		}
		w.hand.drop()
	}()
	for ctx.Err() == nil {
		batch, err := w.gather(ctx)
		if err != nil {
			w.opt.Logger.Warn("queue not read", "error", err)
			_ = background.Pause(ctx, backoffMost/10) // the loop looks at ctx
			continue
		}
		if len(batch) > 0 {
			w.settle(ctx, batch)
		}
	}
	return nil
}

// start learns the witness and joins the queue, however long either is away: a
// worker that gave up would leave every promise queued.
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
	// A queue that was set back or replaced is noticed now, not with the first
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

// join repeats until the queue has taken the worker in.
func (w *Worker) join(ctx context.Context, join func(context.Context) error) error {
	for {
		err := w.untilAvailable(ctx, join)
		if err == nil {
			return nil
		}
		w.opt.Logger.Warn("worker has not joined the queue yet", "error", err)
		if background.Pause(ctx, backoffMost/10) != nil {
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

// gather receives up to a batch: the first entry is waited for, the rest for
// at most BatchWait. Held entries whose time has come join, for half of it at
// most: new ones must not starve behind products in trouble.
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
		_ = background.Pause(ctx, wait) // ended or not, the caller looks at ctx
		return nil, nil
	}
	first, err := w.receive(ctx, wait, limit)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	return w.gatherMore(ctx, first, limit), nil
}

// gatherMore adds what comes within BatchWait. An error ends the wait and no
// more: what is in hand must be settled, nobody else is given it.
func (w *Worker) gatherMore(ctx context.Context, batch []queue.Delivery, limit int) []queue.Delivery {
	until := time.Now().Add(w.opt.BatchWait)
	for claims := countClaims(batch); claims < limit && w.held.claims < heldMost; claims = countClaims(batch) {
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

// receive waits for entries for a while; none in that time is no error, and
// those of products that wait are held.
func (w *Worker) receive(ctx context.Context, wait time.Duration, limit int) ([]queue.Delivery, error) {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	got, err := w.consumer.Receive(bounded, limit)
	if err != nil && bounded.Err() != nil {
		err = nil
	}
	w.hand.take(got)
	return w.holdNew(got), err
}

// batchLimit keeps batches small enough that a shaped flow stays smooth.
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

// spend books claims against this worker's share of the rate. An idle worker saves up nothing.
func (w *Worker) spend(claims int) {
	if w.opt.RatePerSecond == 0 {
		return
	}
	if now := time.Now(); w.paceAt.Before(now) {
		w.paceAt = now
	}
	w.paceAt = w.paceAt.Add(time.Duration(claims) * time.Duration(w.sharers.Load()) * time.Second / time.Duration(w.opt.RatePerSecond))
}

// settle confirms a batch product by product and acknowledges what is
// settled. What cannot be settled now is held, unacknowledged.
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
			w.hand.put(deliveries)
			continue
		}
		if ctx.Err() != nil {
			break // stopping: the consumer hands the rest back
		}
		w.trouble(ctx, deliveries, err)
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

// trouble tells why entries have to wait, where somebody has to know.
func (w *Worker) trouble(ctx context.Context, deliveries []queue.Delivery, cause error) {
	product, epoch := deliveries[0].Entry.ProductID, uint64(0)
	for i := range deliveries {
		epoch = max(epoch, deliveries[i].Entry.Epoch) // older ones are adopted, and cannot be short
	}
	w.opt.Logger.Warn("entries wait", "product", product, "entries", len(deliveries), "error", cause)
	if errors.Is(cause, store.ErrShort) {
		w.short(ctx, product, epoch, cause)
	}
	if errors.Is(cause, store.ErrShort) || errors.Is(cause, store.ErrEpoch) {
		w.opt.OnAlert(alert.Disagree, product, cause)
	}
	if seckill.CodeNotFound.In(cause) {
		w.opt.OnAlert(alert.NoProduct, product, cause)
	}
}

// short has a product recovered whose store is shorter than its ledger has
// promised, which no reading of the ledger shows. The mark is for the epoch of
// the promise: entries are tried again while a recovery goes on, and one that
// is done must not be asked for again.
func (w *Worker) short(ctx context.Context, product uint32, epoch uint64, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeDeadline)
	defer cancel()
	if err := w.store.BeginRebuild(ctx, product, epoch); err != nil {
		w.opt.Logger.Warn("product not marked for recovery; its entries will be tried again", "product", product, "error", err)
	}
	w.opt.OnTrouble(product, cause)
}

// untilAvailable repeats what fails for want of the store, with backoff: an
// outage burns no attempt of anybody. A row that is locked is no outage, and
// others need not wait for it.
func (w *Worker) untilAvailable(ctx context.Context, do func(context.Context) error) error {
	backoff := backoffLeast
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
		backoff = min(2*backoff, backoffMost)
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
