package sale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"seckill"
	"seckill/internal/ledger"
)

// ErrUnread says that the buyers of some limit groups could not be read: a master
// of a Cluster does not answer, or the marks are damaged.
var ErrUnread = errors.New("the ledger's buyers of some groups cannot be read")

// BuyerLedger names the buyers that a ledger remembers.
type BuyerLedger interface {
	// EachBuyer visits every buyer that the groups remember. It calls unread for a
	// group that cannot be read, as the ledger is damaged or a part of it is away,
	// and goes on with the others.
	EachBuyer(ctx context.Context, groups []ledger.BuyerGroup, visit func(group uint32, buyer string), unread func(group uint32, err error)) error
}

// BuyerStore names the buyers to whom the store has sold directly.
type BuyerStore interface {
	DirectBuyers(ctx context.Context, product uint32, visit func(buyer string) error) error
}

// Buyers fills the memory with the buyers who have bought before, here and at
// other instances.
type Buyers struct {
	Ledger  BuyerLedger
	Store   BuyerStore
	Catalog *Catalog
	Memory  *Memory
	Clock   *Clock
	// Shared says that other instances sell from the store too.
	Shared bool
	Logger *slog.Logger
}

// ReadAll reads the buyers of sales that are not over. Groups that cannot be read
// do not keep an instance from starting: the Notifier reads them again and again.
func (b *Buyers) ReadAll(ctx context.Context) error {
	err := b.Read(ctx, func(uint32) bool { return true })
	if errors.Is(err, ErrUnread) && ctx.Err() == nil {
		b.Logger.Warn("starting without some buyers: their groups ask the ledger until they are read", "error", err)
		return nil
	}
	return err
}

// Read reads the buyers of some limit groups: those that the ledger remembers, and
// those to whom the store has sold. A group that cannot be read stays in doubt, so
// that its claims go to the ledger. The error is then ErrUnread, and all the other
// groups were read. The first claim that meets damaged marks closes its shard, which
// is then rebuilt.
func (b *Buyers) Read(ctx context.Context, wanted func(group uint32) bool) error {
	shards, doubts := make(map[uint32]int), make(map[uint32]int64) // by group
	for _, s := range b.Catalog.All() {
		if t := s.Terms(); t.Window(b.Clock.Now()) != seckill.CodeEnded && wanted(t.Group) {
			shards[t.Group] = max(t.Shards, shards[t.Group])
		}
	}
	groups := make([]ledger.BuyerGroup, 0, len(shards))
	for id, n := range shards {
		groups = append(groups, ledger.BuyerGroup{ID: id, Shards: n})
		doubts[id] = b.Memory.GroupDoubts(id)
	}
	unread := make(map[uint32]error)
	err := b.Ledger.EachBuyer(ctx, groups, b.Memory.Learn, func(group uint32, err error) { unread[group] = err })
	if err != nil {
		return fmt.Errorf("read the ledger's buyers: %w", err)
	}
	var failed error // one for all
	for id := range shards {
		if cause := unread[id]; cause != nil {
			b.Memory.DoubtGroup(id)
			failed = fmt.Errorf("%w: %d groups, such as %d: %w", ErrUnread, len(unread), id, cause)
		} else {
			b.Memory.TrustGroup(id, doubts[id])
		}
	}
	if err := b.readSold(ctx, shards); err != nil {
		return err
	}
	return failed
}

// readSold adds the buyers to whom the store has sold, so that a repeated request
// finds its order though nothing is left. A direct product may have very many. If
// several instances sell from the store, the flag of such a product holds back no
// verified buyer, so its buyers are not read.
func (b *Buyers) readSold(ctx context.Context, selling map[uint32]int) error {
	for _, s := range b.Catalog.All() {
		t := s.Terms()
		if selling[t.Group] == 0 || t.HasLedger() || b.Shared {
			continue
		}
		err := b.Store.DirectBuyers(ctx, t.ID, func(buyer string) error {
			b.Memory.Learn(t.Group, buyer)
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the buyers of product %d in the store: %w", t.ID, err)
		}
	}
	return nil
}
