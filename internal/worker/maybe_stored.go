package worker

import (
	"sync"

	"seckill"
	"seckill/internal/queue"
	"seckill/internal/store"
)

// maybeStored holds orders whose entries wait and that the store may have. An
// order is in it from just before its transaction commits until its entry is
// acknowledged. Once the store has an order, others may change it there. So
// while the store is away, the state of such an order is unknown.
//
// Only the acknowledgement removes an order. A later try that fails says
// nothing about an earlier one whose reply was lost. Entries that the worker
// hands back stay in it until the worker joins again. The size is bounded by
// the entries in hand: a batch and maxHeld claims.
type maybeStored struct {
	mu     sync.Mutex // the worker writes, readers of orders read
	orders map[seckill.OrderNo]bool
}

func (d *maybeStored) begin(items []store.Item, parked []store.Parked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range items {
		d.orders[items[i].Claim.OrderNo] = true
	}
	for i := range parked {
		d.orders[parked[i].Item.Claim.OrderNo] = true
	}
}

func (d *maybeStored) end(deliveries []queue.Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range deliveries {
		claims := deliveries[i].Entry.Claims
		for j := range claims {
			delete(d.orders, claims[j].OrderNo)
		}
	}
}

func (d *maybeStored) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.orders)
}

// MayBeStored reports whether the store may have an order whose entry this
// worker has not acknowledged. It is safe for concurrent use. At an instance
// that runs no worker it is always false.
func (w *Worker) MayBeStored(no seckill.OrderNo) bool {
	w.maybeStored.mu.Lock()
	defer w.maybeStored.mu.Unlock()
	return w.maybeStored.orders[no]
}
