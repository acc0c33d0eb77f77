package shopapi

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// returnsEvery is how often the store is asked at most, for all products
	// together.
	returnsEvery = time.Second
	// returnsShare is the part of the time that asking may take: after a round the
	// store is left alone for so many times as long. A product may have a hundred
	// thousand pending orders, and what is asked changes slowly.
	returnsShare = 20
	// returnsFor is how long a product is asked about after somebody looked.
	returnsFor      = time.Minute
	returnsDeadline = 2 * time.Second
)

// Returns knows until when units of sold-out products may come back: until the
// last pending order is paid or has expired. It asks about those that somebody
// looks at, with one query a round, however many look.
type Returns struct {
	read func(ctx context.Context, products []uint32) (map[uint32]time.Time, error)
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	wanted map[uint32]time.Time // when each was last looked at
	until  map[uint32]time.Time
	asked  map[uint32]bool // the products of the last round that succeeded
}

// NewReturns makes one; Run keeps it up to date.
func NewReturns(read func(ctx context.Context, products []uint32) (map[uint32]time.Time, error), now func() time.Time, log *slog.Logger) *Returns {
	return &Returns{read: read, now: now, log: log, wanted: make(map[uint32]time.Time)}
}

// Until is when the last unit of a product that may come back has done so, as of
// the last round; zero if no order of it is pending in the store. known is false
// until a round has asked about the product.
func (r *Returns) Until(product uint32) (until time.Time, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted[product] = r.now()
	return r.until[product], r.asked[product]
}

// Run asks until ctx ends.
func (r *Returns) Run(ctx context.Context) {
	timer := time.NewTimer(returnsEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(r.round(ctx))
		}
	}
}

// round asks once, and says how long to leave the store alone.
func (r *Returns) round(ctx context.Context) time.Duration {
	products := r.looked()
	if len(products) == 0 {
		return returnsEvery
	}
	ctx, cancel := context.WithTimeout(ctx, returnsDeadline)
	defer cancel()
	began := r.now()
	until, err := r.read(ctx, products)
	if err != nil {
		r.log.Debug("pending orders not read", "error", err) // what was known may still be true
	} else {
		asked := make(map[uint32]bool, len(products))
		for _, id := range products {
			asked[id] = true
		}
		r.mu.Lock()
		r.until, r.asked = until, asked
		r.mu.Unlock()
	}
	return max(returnsEvery, returnsShare*r.now().Sub(began))
}

// looked lists the products that somebody looked at lately, and forgets others.
func (r *Returns) looked() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var products []uint32
	for id, at := range r.wanted {
		if r.now().Sub(at) > returnsFor {
			delete(r.wanted, id)
			continue
		}
		products = append(products, id)
	}
	return products
}
