package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/internal/ledger"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// cut is one reading of the store, the ledger, and the store again (protocol
// 6). The ledger's figures must be within the bracket of the two store
// readings, even under traffic.
type cut struct {
	before, after store.Figures
	shards        []ledger.Figures
	queued        int64 // reservations that were not acknowledged at the end
	// settled is false if the deadline passed, or the epoch changed, before the
	// bracket was closed. Then the result is unknown.
	settled bool
	// stray means: at one instant, units were sent that were neither received
	// nor in an open record.
	stray bool
	// audits holds the counted marks of shards where they differ from the
	// figures.
	audits map[int]ledger.Audit
}

// cut reads until a cut settles or the deadline passes.
func (r *Reconciler) cut(ctx context.Context, product uint32) (*cut, error) {
	deadline := time.Now().Add(r.Deadline)
	ticker := time.NewTicker(cutPoll)
	defer ticker.Stop()
	for {
		c, err := r.tryCut(ctx, product, deadline)
		if err == nil && c.settled {
			return c, r.audit(ctx, c)
		}
		if err != nil || time.Now().After(deadline) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return c, ctx.Err()
		case <-ticker.C:
		}
	}
}

func (r *Reconciler) tryCut(ctx context.Context, product uint32, deadline time.Time) (*cut, error) {
	c := &cut{}
	var err error
	if c.before, err = r.Store.Figures(ctx, product); err != nil {
		return nil, err
	}
	p := &c.before.Product
	if p.SoldByStore() {
		c.after, c.settled = c.before, true // one snapshot of the store shows the whole sale
		return c, nil
	}
	for i := range p.Shards {
		f, err := r.readShard(ctx, p, i)
		if err != nil {
			return nil, err
		}
		c.shards = append(c.shards, f)
	}
	if err := r.closeBracket(ctx, c, deadline); err != nil {
		return c, err
	}
	return c, r.findStray(ctx, c)
}

// readShard reads one shard of the product.
func (r *Reconciler) readShard(ctx context.Context, p *seckill.Product, index int) (ledger.Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	f, err := r.Ledger.Read(ctx, ledger.Shard{Product: p.ID, Group: p.Group, Index: index})
	if err != nil {
		return f, seckill.Errorf(seckill.CodeBusy, "read ledger: %w", err)
	}
	return f, nil
}

func (r *Reconciler) readQueue(ctx context.Context, product uint32) (queue.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	queued, err := r.Queue.Stats(ctx, product)
	if err != nil {
		return queued, seckill.Errorf(seckill.CodeBusy, "read queue: %w", err)
	}
	return queued, nil
}

// findStray looks for transfers that lost units. Shards are read one after the
// other, so the two ends of a transfer may be read at different times. If a
// second reading shows the same figures, they all held at one instant between
// the two readings.
func (r *Reconciler) findStray(ctx context.Context, c *cut) error {
	if !strayed(c.shards) {
		return nil
	}
	p := &c.before.Product
	for i := range c.shards {
		now, err := r.readShard(ctx, p, i)
		if err != nil {
			return err
		}
		then := &c.shards[i]
		if now.Epoch != then.Epoch || now.Sent != then.Sent || now.Received != then.Received || len(now.Out) != 0 {
			return nil
		}
	}
	c.stray = true
	return nil
}

// strayed reports whether units were sent and not received, without an open
// record for them.
func strayed(shards []ledger.Figures) bool {
	var transit int64
	for i := range shards {
		if len(shards[i].Out) != 0 {
			return false
		}
		transit += shards[i].Sent - shards[i].Received
	}
	return transit != 0
}

// closeBracket waits until the store has rows for everything that the ledger
// held, or until the queue is empty. Then it reads the store a last time.
func (r *Reconciler) closeBracket(ctx context.Context, c *cut, deadline time.Time) error {
	product := c.before.Product.ID
	ticker := time.NewTicker(cutPoll)
	defer ticker.Stop()
	for {
		queued, err := r.readQueue(ctx, product)
		if err != nil {
			return err
		}
		c.queued = queued.Reservations
		// Read the queue before the store: an entry that has left the queue is
		// then in the store.
		if c.after, err = r.Store.Figures(ctx, product); err != nil {
			return err
		}
		if !c.sameEpoch() {
			return nil
		}
		if c.marksCovered() {
			c.settled = true
			return nil
		}
		if c.queued == 0 {
			c.settled, err = r.keptShards(ctx, c)
			return err
		}
		if time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// keptShards reports whether the ledger still has everything that it had when
// it was read. A queue may be empty because it was lost together with its
// ledger. Then nothing is known about its orders.
func (r *Reconciler) keptShards(ctx context.Context, c *cut) (bool, error) {
	for i := range c.shards {
		now, err := r.readShard(ctx, &c.before.Product, i)
		if err != nil {
			return false, err
		}
		if setBack(&c.shards[i], &now) {
			return false, nil
		}
	}
	return true, nil
}

// setBack reports whether a shard was lost, or closed because of a loss, since
// it was read. Its counters only grow, and only a release removes orders.
func setBack(then, now *ledger.Figures) bool {
	return now.Epoch != then.Epoch || then.Open && !now.Open ||
		now.Releases < then.Releases || now.Sent < then.Sent || now.Received < then.Received ||
		now.Releases == then.Releases && (now.Orders < then.Orders || now.Marked < then.Marked)
}

// sameEpoch reports whether all readings are of one epoch.
func (c *cut) sameEpoch() bool {
	epoch := c.before.Product.Epoch
	if c.after.Product.Epoch != epoch || c.after.Product.Rebuilding {
		return false
	}
	for i := range c.shards {
		if c.shards[i].Epoch != epoch {
			return false
		}
	}
	return true
}

func (c *cut) marksCovered() bool {
	for i := range c.shards {
		if c.shards[i].Marked > shardOf(c.after, i).Rows-shardOf(c.before, i).SettledDead {
			return false
		}
	}
	return true
}

func shardOf(f store.Figures, index int) store.ShardFigures {
	for _, s := range f.Shards {
		if s.Index == index {
			return s
		}
	}
	return store.ShardFigures{Index: index}
}

// violations returns the promises that this cut shows broken.
func (c *cut) violations() []api.Violation {
	var found []api.Violation
	add := func(promise string, expected, got any, format string, args ...any) {
		found = append(found, api.Violation{
			Promise: promise, Expected: fmt.Sprint(expected), Found: fmt.Sprint(got), Detail: fmt.Sprintf(format, args...),
		})
	}
	p := &c.after.Product
	if live := c.after.Pending + c.after.Paid; p.Offered != p.Stock+live {
		add("I1", p.Offered, p.Stock+live, "offered = stock + pending + paid")
	}
	if live := c.after.Pending + c.after.Paid; live > p.Offered || p.Stock < 0 {
		add("I2", "at most "+strconv.FormatInt(p.Offered, 10), live, "units of live orders never exceed units offered")
	}
	if c.settled && p.Epoch > 0 && !p.SoldByStore() {
		c.checkLedger(add)
	}
	return found
}

// bracket returns the allowed range of a shard's marked units (protocol 6).
func (c *cut) bracket(shard int) (low, high int64) {
	low = shardOf(c.before, shard).Rows - shardOf(c.after, shard).Dead
	high = shardOf(c.after, shard).Rows - shardOf(c.before, shard).SettledDead
	return low, high
}

// ownFault reports whether the ledger contradicts itself, or lacks orders of
// the store. If the ledger holds more than the store, an operator must decide:
// the store may be a restored copy, and only the ledger knows its lost orders.
func (c *cut) ownFault() bool {
	fault := c.stray || len(c.audits) > 0
	for i := range c.shards {
		f := &c.shards[i]
		low, high := c.bracket(i)
		if f.Marked > high {
			return false
		}
		fault = fault || !f.Balanced() || f.Marked < low
	}
	return fault
}

func (c *cut) checkLedger(add func(promise string, expected, got any, format string, args ...any)) {
	var total, sent, received int64
	for i := range c.shards {
		f := &c.shards[i]
		if !f.Balanced() {
			add("I5", f.Allotted+f.Received-f.Sent, f.Available+f.Marked, "shard %d: available + marked = allotted + received - sent", i)
		}
		// The first preheat fixes the limit for all epochs. With a higher
		// limit, the ledger would promise orders that the store refuses.
		if limit := c.after.Product.PerUserLimit; f.Limit != limit {
			add("I3", limit, f.Limit, "shard %d: the limit per buyer is the product's", i)
		}
		low, high := c.bracket(i)
		if f.Marked < low || f.Marked > high {
			add("I3", fmt.Sprintf("%d to %d", low, high), f.Marked, "shard %d: marked units = order rows of the epoch, released ones aside", i)
		}
		if a, differs := c.audits[i]; differs {
			add("I3", fmt.Sprintf("%d units of %d orders", a.Marked, a.Live), fmt.Sprintf("%d units of %d orders", a.Units, a.Orders),
				"shard %d: the marks hold what the shard's figures say", i)
		}
		total += f.Unsold() + f.Marked
		sent += f.Sent
		received += f.Received
	}
	if c.stray {
		add("I5", sent, received, "units sent = units received when no transfer is open")
	}
	// Compare the counts of changes too: a change up and one down leave the
	// offered units equal.
	steady := c.before.OpenChanges == 0 && c.after.OpenChanges == 0 && c.before.Changes == c.after.Changes
	if want := c.after.Product.Offered; steady && total != want {
		add("I5", want, total, "available + reserved + in transit = offered")
	}
}

// figures returns the numbers of the report.
func (c *cut) figures() map[string]int64 {
	p := &c.after.Product
	m := map[string]int64{
		"epoch": int64(p.Epoch), "offered": p.Offered, "stock": p.Stock,
		"pending": c.after.Pending, "paid": c.after.Paid, "cancelled": c.after.Cancelled,
		"failed": c.after.Failed, "refunded": c.after.Refunded,
		"queued": c.queued, "letters": c.after.Letters, "releases_due": c.after.ReleasesDue,
		"open_stock_changes": c.after.OpenChanges,
	}
	for i := range c.shards {
		m["ledger_available"] += c.shards[i].Available
		m["ledger_reserved"] += c.shards[i].Marked
		m["ledger_allotted"] += c.shards[i].Allotted
	}
	return m
}
