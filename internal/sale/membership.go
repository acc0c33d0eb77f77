package sale

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"seckill/internal/store"
)

// InstanceTTL is how long a takeover waits for an instance that was killed.
const InstanceTTL = 5 * time.Second

// MemberStore has the leases of the instances.
type MemberStore interface {
	KeepInstance(ctx context.Context, in store.Instance, ttl time.Duration) (shops int, lapsed bool, err error)
	LeaveInstance(ctx context.Context, name string) error
}

// Limit is a rate limit that the shops divide among them.
type Limit interface{ Share(shops int) }

// Membership is the lease of one instance, and what it learns with it: how many
// shops are alive.
type Membership struct {
	Name          string
	Shop          bool // it has the shop's role
	Store         MemberStore
	Catalog       *Catalog
	Silences      *Silences
	TakeoverAfter time.Duration
	Logger        *slog.Logger

	others atomic.Int64 // shops that are alive, this one not counted
	limits []Limit
}

// Shops is how many shops are alive, this one included.
func (m *Membership) Shops() int64 { return 1 + m.others.Load() }

// Divide has a limit divided among the shops from now on. Call it before the first
// round of the duty.
func (m *Membership) Divide(l Limit) {
	m.limits = append(m.limits, l)
	l.Share(int(m.Shops()))
}

// Keep renews the lease, and says which ledgers do not answer this instance. Rate
// limits are divided among the shops that have a lease and a ledger that answers.
//
// A shop keeps its last number while it cannot know a better one: while the store
// or its ledger is away. If its own lease had lapsed, those of the others may have
// too, so a lower number does not count. An instance that had no lease reads the
// epochs again, because it may have missed a takeover.
func (m *Membership) Keep(ctx context.Context) error {
	silent := m.Silences.For(m.TakeoverAfter)
	sells := m.Shop && len(silent) == 0
	shops, lapsed, err := m.Store.KeepInstance(ctx, store.Instance{Name: m.Name, Shop: sells, Silent: silent}, InstanceTTL)
	if err != nil {
		return fmt.Errorf("renew the lease of this instance: %w", err)
	}
	if sells && (!lapsed || shops > int(m.Shops())) {
		m.share(shops)
	}
	if lapsed {
		return m.Catalog.Refresh(ctx)
	}
	return nil
}

// share divides the limits among so many shops, this one included.
func (m *Membership) share(shops int) {
	if others := int64(shops - 1); m.others.Swap(others) == others {
		return
	}
	m.Logger.Info("shops share the rate limits", "shops", shops)
	for _, l := range m.limits {
		l.Share(shops)
	}
}

// Leave ends the lease: this instance promises nothing any more.
func (m *Membership) Leave(ctx context.Context) {
	if err := m.Store.LeaveInstance(ctx, m.Name); err != nil {
		m.Logger.Debug("lease of this instance not ended; it will run out", "error", err)
	}
}
