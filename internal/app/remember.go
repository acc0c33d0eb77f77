package app

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/ledger"
)

// remember fills the memory with the buyers of sales that are not over.
func (p *parts) remember(ctx context.Context) error {
	return p.rememberGroups(ctx, func(uint32) bool { return true })
}

// rememberGroups does so for some limit groups: with those whom the ledger
// remembers, and those to whom the store has sold. Groups that cannot be read
// because the ledger is damaged are doubted, and the error is then
// ledger.ErrDamaged: all the others were read.
func (p *parts) rememberGroups(ctx context.Context, wanted func(group uint32) bool) error {
	shards, rebuilds := make(map[uint32]int), make(map[uint32]int64) // by group
	for _, s := range p.catalog.All() {
		if t := s.Terms(); t.Window(p.clock.Now()) != seckill.CodeEnded && wanted(t.Group) {
			shards[t.Group] = max(t.Shards, shards[t.Group])
		}
	}
	groups := make([]saleGroup, 0, len(shards))
	for id, n := range shards {
		groups = append(groups, saleGroup{id, n})
		rebuilds[id] = p.memory.Rebuilds(id)
	}
	damage := make(map[uint32]error)
	err := p.book.eachBuyer(ctx, groups, p.memory.Learn, func(group uint32, err error) { damage[group] = err })
	if err != nil {
		return fmt.Errorf("read the ledger's buyers: %w", err)
	}
	for id := range shards {
		if damage[id] == nil {
			p.memory.TrustGroup(id, rebuilds[id])
		} else if p.memory.DoubtUnread(id) {
			p.tellDamage(id, damage[id])
		}
	}
	if err := p.rememberSold(ctx, shards); err != nil || len(damage) == 0 {
		return err
	}
	return fmt.Errorf("read the ledger's buyers of %d groups: %w", len(damage), ledger.ErrDamaged)
}

// tellDamage has the products of a group looked at.
func (p *parts) tellDamage(group uint32, err error) {
	for _, s := range p.catalog.All() {
		if t := s.Terms(); t.Group == group && t.HasLedger() {
			p.signals.raise(t.ID, err)
		}
	}
}

// rememberSold adds the buyers to whom the store has sold: it finds them again
// though nothing is left, as the ledger does its own. Those of a direct product
// may be very many, and among several instances its flag holds back nobody who
// is known: there they are not read.
func (p *parts) rememberSold(ctx context.Context, selling map[uint32]int) error {
	for _, s := range p.catalog.All() {
		t := s.Terms()
		if selling[t.Group] == 0 || t.HasLedger() && t.FallbackShare == 0 || !t.HasLedger() && !p.alone() {
			continue
		}
		err := p.store.CounterBuyers(ctx, t.ID, func(buyer string) error {
			p.memory.LearnSold(t.Group, buyer)
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the buyers of product %d in the store: %w", t.ID, err)
		}
	}
	return nil
}
