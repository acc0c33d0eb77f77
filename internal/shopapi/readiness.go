package shopapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"seckill"
	"seckill/internal/sale"
)

var errStopping = errors.New("the process is stopping")

// Pinger is a dependency whose health can be checked.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Readiness reports whether this instance can sell now.
type Readiness struct {
	store, ledger *probe
	// sharedStore, sharedLedger: all instances use the same one.
	sharedStore, sharedLedger bool
	catalog                   *sale.Catalog
	clock                     *sale.Clock
	stopping                  atomic.Bool
}

// ReadinessOptions are the dependencies of a shop.
type ReadinessOptions struct {
	Store, Ledger             Pinger
	SharedStore, SharedLedger bool
	Catalog                   *sale.Catalog
	Clock                     *sale.Clock
}

// NewReadiness makes a Readiness.
func NewReadiness(opt ReadinessOptions) *Readiness {
	return &Readiness{
		store: newProbe(opt.Store.Ping), ledger: newProbe(opt.Ledger.Ping), sharedStore: opt.SharedStore, sharedLedger: opt.SharedLedger,
		catalog: opt.Catalog, clock: opt.Clock,
	}
}

// Stop makes all later checks fail, because the process is stopping.
func (r *Readiness) Stop() { r.stopping.Store(true) }

// CheckRunning fails while the process stops.
func (r *Readiness) CheckRunning(context.Context) error {
	if r.stopping.Load() {
		return errStopping
	}
	return nil
}

// Check returns why the instance cannot sell now, or nil. Embedded store and ledger must
// both work. If a shared store is down, it is down for every instance, and the shop goes on
// selling without it. Taking instances out of service would end the sale. If the ledger is
// down, the instance is not ready, unless the store sells something.
func (r *Readiness) Check(ctx context.Context) error {
	if err := r.CheckRunning(ctx); err != nil {
		return err
	}
	store := make(chan error, 1)
	go func() { store <- r.store.Ask() }() // concurrently: a check may take all of the time
	ledgerErr := r.ledger.Ask()
	if ledgerErr == nil && r.sharedStore {
		return nil
	}
	storeErr := <-store
	switch {
	case storeErr != nil:
		return fmt.Errorf("store: %w", storeErr)
	case ledgerErr != nil && !(r.sharedLedger && r.sellsFromStore()):
		return fmt.Errorf("ledger: %w", ledgerErr)
	}
	return nil
}

// sellsFromStore reports whether the store sells an open sale. A product with a fallback
// counts only after its takeover: if the ledger is down for one instance only, there is no
// takeover.
func (r *Readiness) sellsFromStore() bool {
	now := r.clock.Now()
	return slices.ContainsFunc(r.catalog.All(), func(s *sale.Sale) bool {
		t := s.Terms()
		return t.Window(now) != seckill.CodeEnded && t.SoldByStore()
	})
}
