package app

import (
	"context"
	"errors"
	"fmt"

	"seckill"
	"seckill/internal/ledger/ledgerredis"
)

// errUnread says that the buyers of some limit groups could not be read: a master
// of a Cluster does not answer, or the marks are damaged.
var errUnread = errors.New("the ledger's buyers of some groups cannot be read")

// remember fills the memory with the buyers of sales that are not over. Groups
// that cannot be read are read when the board is joined, again and again.
func (p *parts) remember(ctx context.Context) error {
	err := p.rememberGroups(ctx, func(uint32) bool { return true })
	if errors.Is(err, errUnread) && ctx.Err() == nil {
		p.log.Warn("starting without some buyers: their groups ask the ledger until they are read", "error", err)
		return nil
	}
	return err
}

// rememberGroups does so for some limit groups: with those whom the ledger
// remembers, and those to whom the store has sold. Groups that cannot be read are
// doubted, so that their claims go to the ledger, and the error is then errUnread:
// all the others were read. The first claim that meets damaged marks closes its
// shard, which is then rebuilt.
func (p *parts) rememberGroups(ctx context.Context, wanted func(group uint32) bool) error {
	shards, doubts := make(map[uint32]int), make(map[uint32]int64) // by group
	for _, s := range p.catalog.All() {
		if t := s.Terms(); t.Window(p.clock.Now()) != seckill.CodeEnded && wanted(t.Group) {
			shards[t.Group] = max(t.Shards, shards[t.Group])
		}
	}
	groups := make([]ledgerredis.Group, 0, len(shards))
	for id, n := range shards {
		groups = append(groups, ledgerredis.Group{ID: id, Shards: n})
		doubts[id] = p.memory.GroupDoubts(id)
	}
	unread := make(map[uint32]error)
	err := p.book.eachBuyer(ctx, groups, p.memory.Learn, func(group uint32, err error) { unread[group] = err })
	if err != nil {
		return fmt.Errorf("read the ledger's buyers: %w", err)
	}
	var failed error // one for all
	for id := range shards {
		if cause := unread[id]; cause != nil {
			p.memory.DoubtGroup(id)
			failed = fmt.Errorf("%w: %d groups, such as %d: %w", errUnread, len(unread), id, cause)
		} else {
			p.memory.TrustGroup(id, doubts[id])
		}
	}
	if err := p.rememberSold(ctx, shards); err != nil {
		return err
	}
	return failed
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
		err := p.store.DirectBuyers(ctx, t.ID, func(buyer string) error {
			p.memory.Learn(t.Group, buyer)
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the buyers of product %d in the store: %w", t.ID, err)
		}
	}
	return nil
}
