package worker

import (
	"slices"
	"sync"

	"seckill/internal/queue"
)

// unsettled counts, by product, the claims that a worker has received and not
// settled yet. A takeover waits until a product has none (protocol 5, rule 7).
type unsettled struct {
	mu     sync.Mutex
	claims map[uint32]int
}

func (u *unsettled) received(deliveries []queue.Delivery) { u.add(deliveries, 1) }
func (u *unsettled) settled(deliveries []queue.Delivery)  { u.add(deliveries, -1) }

func (u *unsettled) add(deliveries []queue.Delivery, sign int) {
	if len(deliveries) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.claims == nil {
		u.claims = make(map[uint32]int)
	}
	for i := range deliveries {
		e := &deliveries[i].Entry
		if u.claims[e.ProductID] += sign * len(e.Claims); u.claims[e.ProductID] == 0 {
			delete(u.claims, e.ProductID)
		}
	}
}

// clear forgets all claims: the worker has left the queue.
func (u *unsettled) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.claims = nil
}

func (u *unsettled) has(product uint32) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.claims[product] > 0
}

// InHand reports whether a worker has received claims of the product and not
// settled them yet.
func (c Crew) InHand(product uint32) bool {
	return slices.ContainsFunc(c, func(w *Worker) bool { return w.unsettled.has(product) })
}
