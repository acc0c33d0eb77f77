package worker

import (
	"errors"
	"fmt"
	"time"

	"seckill/internal/alert"
	"seckill/internal/queue"
	"seckill/internal/store"
)

const (
	// holdDelay is how long a product's entries wait that wait for a recovery.
	holdDelay = 500 * time.Millisecond
	// lockedDelay is how long they wait behind somebody who holds the product's
	// row. To find out that it is still held takes the store's time as well as
	// the worker's, seconds of it, in which no other product is served.
	lockedDelay = 5 * time.Second
	// heldMost bounds the claims that wait for recoveries, of all products
	// together: a quarter of a kilobyte each, so 50 MB. Beyond it nothing more is
	// received until some are settled, and an operator is told. The queue gives
	// back first what it was handed back first, so that handing one product's
	// entries back would not let another's pass.
	heldMost = 200_000
)

// holds are the entries that wait, by product: what one of a product waits for,
// all of it wait for. One try of a few is made for all in each delay, so that
// a product in trouble costs the others next to nothing however much it has.
type holds struct {
	products map[uint32]*held
	claims   int
}

type held struct {
	deliveries []queue.Delivery
	retryAt    time.Time
}

// add has a product's entries wait for a delay, or with those that wait already.
func (h *holds) add(deliveries []queue.Delivery, retryAt time.Time) {
	product := deliveries[0].Entry.ProductID
	of := h.products[product]
	if of == nil {
		of = &held{}
		h.products[product] = of
	}
	of.deliveries = append(of.deliveries, deliveries...)
	of.retryAt = retryAt
	h.claims += countClaims(deliveries)
}

// waiting is until when a product waits; zero when it does not.
func (h *holds) waiting(product uint32) time.Time {
	if of := h.products[product]; of != nil {
		return of.retryAt
	}
	return time.Time{}
}

// next is when the first product is to be tried again; zero without any.
func (h *holds) next() (at time.Time) {
	for _, of := range h.products {
		if at.IsZero() || of.retryAt.Before(at) {
			at = of.retryAt
		}
	}
	return at
}

// take takes entries whose time has come, of at most limit claims together
// (one entry, if that alone has more).
func (h *holds) take(now time.Time, limit int) (due []queue.Delivery) {
	claims := 0
	for product, of := range h.products {
		if now.Before(of.retryAt) {
			continue
		}
		n := 0
		for ; n < len(of.deliveries); n++ {
			claims += len(of.deliveries[n].Entry.Claims)
			if len(due)+n > 0 && claims > limit {
				break
			}
		}
		due = append(due, of.deliveries[:n]...)
		if of.deliveries = of.deliveries[n:]; len(of.deliveries) == 0 {
			delete(h.products, product)
		}
		if claims >= limit {
			break
		}
	}
	h.claims -= countClaims(due)
	return due
}

// full tells an operator when nothing more can be received.
func (w *Worker) full() bool {
	if w.held.claims < heldMost {
		return false
	}
	w.opt.OnAlert(alert.TooManyWait, 0,
		fmt.Errorf("%d claims of %d products wait; nothing more is received until some are settled", w.held.claims, len(w.held.products)))
	return true
}

// hold keeps entries for later without acknowledging them.
func (w *Worker) hold(deliveries []queue.Delivery, delay time.Duration) {
	retryAt := time.Now().Add(delay)
	for _, group := range byProduct(deliveries) {
		w.held.add(group, retryAt)
	}
}

// delayAfter is how long entries wait that could not be settled.
func delayAfter(err error) time.Duration {
	if errors.Is(err, store.ErrLocked) {
		return lockedDelay
	}
	return holdDelay
}

// holdNew has entries wait without a try whose product waits, and returns the
// others.
func (w *Worker) holdNew(received []queue.Delivery) (others []queue.Delivery) {
	for _, group := range byProduct(received) {
		if at := w.held.waiting(group[0].Entry.ProductID); time.Now().Before(at) {
			w.held.add(group, at)
		} else {
			others = append(others, group...)
		}
	}
	return others
}
