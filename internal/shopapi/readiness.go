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

// Pinger is a part that can be asked whether it works.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Readiness says whether this instance can sell now.
type Readiness struct {
	store, ledger *probe
	// sharedStore, sharedLedger: it is away for every instance alike, or for none.
	sharedStore, sharedLedger bool
	catalog                   *sale.Catalog
	clock                     *sale.Clock
	stopping                  atomic.Bool
}

// ReadinessOptions are the parts that a shop needs.
type ReadinessOptions struct {
	Store, Ledger             Pinger
	SharedStore, SharedLedger bool
	Catalog                   *sale.Catalog
	Clock                     *sale.Clock
}

// NewReadiness makes one.
func NewReadiness(opt ReadinessOptions) *Readiness {
	return &Readiness{
		store: newProbe(opt.Store.Ping), ledger: newProbe(opt.Ledger.Ping), sharedStore: opt.SharedStore, sharedLedger: opt.SharedLedger,
		catalog: opt.Catalog, clock: opt.Clock,
	}
}

// Stop has every later check fail: the process is stopping.
func (r *Readiness) Stop() { r.stopping.Store(true) }

// CheckRunning fails while the process stops.
func (r *Readiness) CheckRunning(context.Context) error {
	if r.stopping.Load() {
		return errStopping
	}
	return nil
}

// Check returns why the instance cannot sell now, or nil. With embedded parts it
// needs both. A shared store is away for every instance alike, and the shop goes on
// selling without it: taking instances out of service would end the sale. Without
// its ledger an instance is not ready, unless the store sells something.
func (r *Readiness) Check(ctx context.Context) error {
	if err := r.CheckRunning(ctx); err != nil {
		return err
	}
	store := make(chan error, 1)
	go func() { store <- r.store.Ask() }() // at once: one that is away may take all the time there is
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

// sellsFromStore reports whether the store sells a sale that is not over. A product
// with a fallback does not count before its takeover: where one instance alone does
// not hear the ledger there will be none.
func (r *Readiness) sellsFromStore() bool {
	now := r.clock.Now()
	return slices.ContainsFunc(r.catalog.All(), func(s *sale.Sale) bool {
		t := s.Terms()
		return t.Window(now) != seckill.CodeEnded && t.SoldByStore()
	})
}
