package app

import (
	"context"
	"errors"
	"fmt"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/ledger/ledgerredis"
)

// errAway says that a part of the ledger, a master of a Cluster, does not
// answer.
var errAway = errors.New("a part of the ledger does not answer")

// remember fills the memory with the buyers of sales that are not over. Groups of
// a part of the ledger that is away are doubted, and read when the board is
// joined, again and again until it answers.
func (p *parts) remember(ctx context.Context) error {
	err := p.rememberGroups(ctx, func(uint32) bool { return true })
	if errors.Is(err, errAway) && ctx.Err() == nil {
		p.log.Warn("starting without a part of the ledger: its products are busy until it is back", "error", err)
		return nil
	}
	return err
}

// rememberGroups does so for some limit groups: with those whom the ledger
// remembers, and those to whom the store has sold. Groups that cannot be read
// because the ledger is damaged, or a part of it away, are doubted, and the error
// is then ledger.ErrDamaged, or errAway: all the others were read.
func (p *parts) rememberGroups(ctx context.Context, wanted func(group uint32) bool) error {
	shards, rebuilds := make(map[uint32]int), make(map[uint32]int64) // by group
	for _, s := range p.catalog.All() {
		if t := s.Terms(); t.Window(p.clock.Now()) != seckill.CodeEnded && wanted(t.Group) {
			shards[t.Group] = max(t.Shards, shards[t.Group])
		}
	}
	groups := make([]ledgerredis.Group, 0, len(shards))
	for id, n := range shards {
		groups = append(groups, ledgerredis.Group{ID: id, Shards: n})
		rebuilds[id] = p.memory.Rebuilds(id)
	}
	unread := make(map[uint32]error)
	err := p.book.eachBuyer(ctx, groups, p.memory.Learn, func(group uint32, err error) { unread[group] = err })
	if err != nil {
		return fmt.Errorf("read the ledger's buyers: %w", err)
	}
	for id := range shards {
		if unread[id] == nil {
			p.memory.TrustGroup(id, rebuilds[id])
		}
	}
	failed := p.doubt(ctx, unread)
	if err := p.rememberSold(ctx, shards); err != nil {
		return err
	}
	return failed
}

// doubt doubts groups that were not read, and says what hindered it.
func (p *parts) doubt(ctx context.Context, unread map[uint32]error) error {
	var damaged, away int
	var silence error // of one, for all
	for group, err := range unread {
		if !errors.Is(err, ledger.ErrDamaged) {
			away, silence = away+1, err
			p.memory.DoubtAway(group)
			continue
		}
		damaged++
		if p.memory.DoubtUnread(group) {
			p.closeGroup(ctx, group, err)
		}
	}
	var failed []error
	if damaged > 0 {
		failed = append(failed, fmt.Errorf("read the ledger's buyers of %d groups: %w", damaged, ledger.ErrDamaged))
	}
	if away > 0 {
		failed = append(failed, fmt.Errorf("read the ledger's buyers of %d groups: %w: %w", away, errAway, silence))
	}
	return errors.Join(failed...)
}

// closeGroup closes the shards of a group whose marks cannot be read, and has its
// products rebuilt. A shard that cannot be closed now is closed by the next call
// that meets the marks.
func (p *parts) closeGroup(ctx context.Context, group uint32, cause error) {
	for _, s := range p.catalog.All() {
		t := s.Terms()
		if t.Group != group || !t.HasLedger() {
			continue
		}
		for i := range t.LedgerShards() {
			if err := p.ledger.Close(ctx, ledger.ShardOf(t, i)); err != nil {
				p.log.Warn("shard not closed", "product", t.ID, "shard", i, "error", err)
			}
		}
		p.signals.raise(t.ID, cause)
	}
}

// rememberSold adds the buyers to whom the store has sold: it finds them again
// though nothing is left, as the ledger does its own. Those of a direct product
// may be very many, and among several instances its flag holds back nobody who
// is known: there they are not read.
func (p *parts) rememberSold(ctx context.Context, selling map[uint32]int) error {
	for _, s := range p.catalog.All() {
		t := s.Terms()
		if selling[t.Group] == 0 || t.HasLedger() || !p.alone() {
			continue
		}
		err := p.store.CounterBuyers(ctx, t.ID, func(buyer string) error {
			p.memory.Learn(t.Group, buyer)
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the buyers of product %d in the store: %w", t.ID, err)
		}
	}
	return nil
}
