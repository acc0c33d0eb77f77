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
	// holdDelay is the delay between two tries of a product whose entries wait
	// for a recovery.
	holdDelay = 500 * time.Millisecond
	// lockedDelay is the delay after a locked product row. A try on a locked
	// row takes seconds of the store and the worker, and no other product is
	// served meanwhile.
	lockedDelay = 5 * time.Second
	// maxHeld bounds the claims that wait for recoveries, of all products
	// together: 50 MB at 250 bytes each. Above it, the worker receives nothing
	// more until some are settled, and alerts. Handing entries back would not
	// help: the queue delivers them again before those of other products.
	maxHeld = 200_000
)

// holds are the waiting entries, by product. If one entry of a product waits,
// all its later entries wait too. After each delay the worker tries a few of
// them once, so a product in trouble costs the others little.
type holds struct {
	products map[uint32]*held
	claims   int
}

type held struct {
	deliveries []queue.Delivery
	retryAt    time.Time
}

// add holds entries of one product until retryAt, together with those that
// already wait.
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

// waiting returns the time until which a product waits, or zero if it does not.
func (h *holds) waiting(product uint32) time.Time {
	if of := h.products[product]; of != nil {
		return of.retryAt
	}
	return time.Time{}
}

// next returns the time of the earliest retry, or zero if nothing waits.
func (h *holds) next() (at time.Time) {
	for _, of := range h.products {
		if at.IsZero() || of.retryAt.Before(at) {
			at = of.retryAt
		}
	}
	return at
}

// take removes and returns entries that are due. Together they have at most
// limit claims, or one entry if that alone has more.
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

// full alerts and returns true if the worker can hold no more claims.
func (w *Worker) full() bool {
	if w.held.claims < maxHeld {
		return false
	}
	w.opt.OnAlert(alert.TooManyWait, 0,
		fmt.Errorf("%d claims of %d products wait; nothing more is received until some are settled", w.held.claims, len(w.held.products)))
	return true
}

// hold keeps entries for later and does not acknowledge them.
func (w *Worker) hold(deliveries []queue.Delivery, delay time.Duration) {
	retryAt := time.Now().Add(delay)
	for _, group := range byProduct(deliveries) {
		w.held.add(group, retryAt)
	}
}

// delayAfter returns the delay after a failure to settle entries.
func delayAfter(err error) time.Duration {
	if errors.Is(err, store.ErrLocked) {
		return lockedDelay
	}
	return holdDelay
}

// holdNew holds the new entries of products that already wait, and returns the
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
