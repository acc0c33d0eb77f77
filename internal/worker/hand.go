package worker

import (
	"slices"
	"sync"

	"seckill/internal/queue"
)

// hand counts the claims that a worker has received and not settled yet, by
// product. A takeover waits until there are none of its product (protocol 5,
// rule 7).
type hand struct {
	mu     sync.Mutex
	claims map[uint32]int
}

func (h *hand) take(deliveries []queue.Delivery) { h.add(deliveries, 1) }
func (h *hand) put(deliveries []queue.Delivery)  { h.add(deliveries, -1) }

func (h *hand) add(deliveries []queue.Delivery, sign int) {
	if len(deliveries) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims == nil {
		h.claims = make(map[uint32]int)
	}
	for i := range deliveries {
		e := &deliveries[i].Entry
		if h.claims[e.ProductID] += sign * len(e.Claims); h.claims[e.ProductID] == 0 {
			delete(h.claims, e.ProductID)
		}
	}
}

// drop forgets all: the worker has left the queue.
func (h *hand) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims = nil
}

func (h *hand) has(product uint32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.claims[product] > 0
}

// InHand reports whether one of the crew has received claims of a product that it
// has not settled yet.
func (c Crew) InHand(product uint32) bool {
	return slices.ContainsFunc(c, func(w *Worker) bool { return w.hand.has(product) })
}
