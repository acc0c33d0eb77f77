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
	orders map[seckill.OrderNo]bool
}

func (d *doubts) begin(items []store.Item, parked []store.Parked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range items {
		d.orders[items[i].Claim.OrderNo] = true
	}
	for i := range parked {
		d.orders[parked[i].Item.Claim.OrderNo] = true
	}
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
	return w.doubts.orders[no]
}
