package app

import (
	"context"
	"fmt"
	"slices"

	"seckill"
	"seckill/internal/adminapi"
	"seckill/internal/sale"
)

// checks decide whether an instance may be used, by what its roles need. They
// are those of its operator address. An instance that only sells may do so
// without one of its parts; whoever watches it is told which all the same. Its
// operators are few, and are told how it is now: parts are asked each time.
func (p *parts) checks(roles []string) []adminapi.Check {
	onlySells := slices.Equal(roles, []string{RoleShop})
	checks := []adminapi.Check{
		{Name: "store", Run: p.store.Ping, Spared: onlySells},
		{Name: "ledger", Run: p.book.ping, Spared: onlySells},
	}
	checks = append(checks, adminapi.Check{Name: "running", Run: func(context.Context) error { return p.checkRunning() }})
	if onlySells {
		checks = append(checks, adminapi.Check{Name: "shop", Run: p.ready})
	}
	return checks
}

// ready reports why the instance cannot sell now, or nil. With embedded parts
// it needs both. A store that is shared is away for every instance alike, and
// the shop goes on selling without it: to take instances out of service then
// would end the sale. A ledger that is away is missed, unless something is
// sold straight from the store.
func (p *parts) ready(context.Context) error {
	if err := p.checkRunning(); err != nil {
		return err
	}
	store := make(chan error, 1)
	go func() { store <- p.storeProbe.Ask() }() // at once: one that is away may take all the time there is
	ledgerErr := p.ledgerProbe.Ask()
	if ledgerErr == nil && p.cfg.SharedStore() {
		return nil
	}
	storeErr := <-store
	switch {
	case storeErr != nil:
		return fmt.Errorf("store: %w", storeErr)
	case ledgerErr != nil && !(p.cfg.SharedLedger() && p.sellsFromStore()):
		return fmt.Errorf("ledger: %w", ledgerErr)
	}
	return nil
}

// sellsFromStore reports whether a sale that is not over is sold by the store. A
// product that is to fall back on it does not count before its takeover: where one
// instance alone does not hear the ledger there will be none.
func (p *parts) sellsFromStore() bool {
	now := p.clock.Now()
	return slices.ContainsFunc(p.catalog.All(), func(s *sale.Sale) bool {
		t := s.Terms()
		return t.Window(now) != seckill.CodeEnded && t.SoldByStore()
	})
}
