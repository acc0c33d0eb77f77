package shopapi

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// returnsEvery is the minimum interval of store queries, for all products
	// together.
	returnsEvery = time.Second
	// returnsShare bounds the load on the store: after a query, the store gets a
	// pause of this many times the query's duration. A product may have 100,000
	// pending orders, and the answer changes slowly.
	returnsShare = 20
	// returnsFor is how long a product is queried after the last request for it.
	returnsFor      = time.Minute
	returnsDeadline = 2 * time.Second
)

// Returns knows until when units of sold-out products may come back: until the last
// pending order is paid or has expired. It queries the store only for products that
// were requested lately, with one query per round.
type Returns struct {
	read func(ctx context.Context, products []uint32) (map[uint32]time.Time, error)
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	wanted map[uint32]time.Time // time of the last request
	until  map[uint32]time.Time
	asked  map[uint32]bool // products of the last successful round
}

// NewReturns makes a Returns; Run keeps it up to date.
func NewReturns(read func(ctx context.Context, products []uint32) (map[uint32]time.Time, error), now func() time.Time, log *slog.Logger) *Returns {
	return &Returns{read: read, now: now, log: log, wanted: make(map[uint32]time.Time)}
}

// Until returns when the last unit that may come back has done so, as of the last
// round; zero if the store has no pending order. known is false until a round has
// queried the product.
func (r *Returns) Until(product uint32) (until time.Time, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted[product] = r.now()
	return r.until[product], r.asked[product]
}

// Run queries the store until ctx ends.
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

// round queries once and returns the pause until the next query.
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
		r.log.Debug("pending orders not read", "error", err) // the last result may still be true
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

// looked lists the products that were requested lately, and forgets the others.
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
