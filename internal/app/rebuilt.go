package app

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"seckill"
	"seckill/internal/alert"
	"seckill/internal/sale"
)

const (
	// rebuiltOften is how many rebuilds of one ledger within rebuiltWithin are no
	// accident any more: what was lost is mended by one or two.
	rebuiltOften  = 5
	rebuiltWithin = 2 * time.Minute
)

// rebuilds counts how often the ledger of each product was rebuilt of late.
type rebuilds struct {
	mu sync.Mutex
	of map[uint32]*epochs
}

// epochs are the last ones of a product that were seen.
type epochs struct {
	newest uint64
	at     [rebuiltOften]time.Time // the oldest first; zero for none
}

func newRebuilds() *rebuilds { return &rebuilds{of: make(map[uint32]*epochs)} }

// saw counts an epoch of a product's ledger, once however often it is told of.
// True says that the last rebuiltOften began within a time that is too short.
func (r *rebuilds) saw(product uint32, epoch uint64, now time.Time) (within time.Duration, often bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.of[product]
	if e == nil {
		e = &epochs{}
		r.of[product] = e
	}
	if e.newest == epoch {
		return 0, false
	}
	e.newest = epoch
	copy(e.at[:], e.at[1:])
	e.at[rebuiltOften-1] = now
	within = now.Sub(e.at[0])
	return within, !e.at[0].IsZero() && within <= rebuiltWithin
}

// tidy forgets what is longer ago than counts.
func (r *rebuilds) tidy(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(_ uint32, e *epochs) bool { return now.Sub(e.at[rebuiltOften-1]) > rebuiltWithin })
}

// rebuildFollower has rebuilds counted.
type rebuildFollower struct {
	sale.NoFollower
	p *parts
}

// LedgerRebuilt counts a rebuild.
func (f rebuildFollower) LedgerRebuilt(product *seckill.Product) { f.p.sawRebuilt(product) }

// sawRebuilt tells operators of a ledger that does not come to rest. Each
// rebuild is in order; that there is always another is not, and nobody would
// hear of it otherwise.
func (p *parts) sawRebuilt(product *seckill.Product) {
	within, often := p.rebuilds.saw(product.ID, product.Epoch, time.Now())
	if !often {
		return
	}
	advice := "compare redis.addrs, redis.prefix and redis.sentinel_master of all instances, and see whether all of them reach the same master"
	if !p.cfg.SharedLedger() {
		advice = "see whether another process uses the same store.dsn: with ledger.kind memory there can be one only"
	}
	p.alerter.Raise(alert.RebuiltAgain, product.ID, fmt.Errorf("rebuilt %d times within %s, perhaps because an instance keeps its ledger elsewhere: %s",
		rebuiltOften, within.Round(time.Second), advice))
}
