package worker

import (
	"sync"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// doubts are the orders in a worker's hands that the store may have although
// their entries wait: from just before their transaction is committed until
// they are acknowledged. Once the store has an order anybody may move it, so
// that with the store away nobody can tell what it is, least of all who did
// not hear whether the commit happened.
//
// Only the acknowledgement ends a doubt. A later try that surely changed
// nothing says nothing of an earlier one, and a batch may be refused for the
// sake of others in it. What is handed back stays in doubt until the worker
// joins again. They are no more than the worker has in hand: a batch, and
// heldMost.
type doubts struct {
	mu     sync.Mutex // the worker writes, readers of orders ask
	orders map[seckill.OrderNo]doubt
}

// doubt is what the worker knows of its own tries of an order.
type doubt uint8

const (
	begun  doubt = iota // a commit has begun
	missed              // a try has ended in an error: it may have been committed unheard
	heard               // what became of it is known, and told where it has to be
)

func (d *doubts) begin(items []store.Item, parked []store.Parked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range items {
		d.add(items[i].Claim.OrderNo)
	}
	for i := range parked {
		d.add(parked[i].Item.Claim.OrderNo)
	}
}

func (d *doubts) add(no seckill.OrderNo) {
	if _, in := d.orders[no]; !in {
		d.orders[no] = begun
	}
}

// miss says that a try of items has ended in an error.
func (d *doubts) miss(items []store.Item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range items {
		no := items[i].Claim.OrderNo
		if was, in := d.orders[no]; in && was == begun {
			d.orders[no] = missed
		}
	}
}

// hear says that it is known what became of an order in doubt.
func (d *doubts) hear(no seckill.OrderNo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.orders[no] = heard
}

// missed are the items that the store had before this try, perhaps from one
// that was committed unheard.
func (d *doubts) missed(items []store.Item, outcomes []store.ConfirmOutcome) (some []store.Item) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, outcome := range outcomes {
		if outcome == store.ConfirmReplay && d.orders[items[i].Claim.OrderNo] == missed {
			some = append(some, items[i])
		}
	}
	return some
}

func (d *doubts) end(deliveries []queue.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range deliveries {
		claims := deliveries[i].Entry.Claims
		for j := range claims {
			delete(d.orders, claims[j].OrderNo)
		}
	}
}

func (d *doubts) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.orders)
}

// MayBeStored reports whether the store may have an order whose entry this
// worker has not acknowledged. It is safe for concurrent use, and false at an
// instance that runs no worker.
func (w *Worker) MayBeStored(no seckill.OrderNo) bool {
	w.doubts.mu.Lock()
	defer w.doubts.mu.Unlock()
	_, may := w.doubts.orders[no]
	return may
}
