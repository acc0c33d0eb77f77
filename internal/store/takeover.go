package store

import (
	"context"
	"time"

	"seckill"
)

// Takeovers moves the sale of a product from the ledger to the store (protocol 5). Each epoch
// has one seller. OpenEpoch moves the sale back.
type Takeovers interface {
	// KeepInstance takes or renews the lease of an instance for ttl. It returns how many shops
	// have a lease then, and whether the instance had none. If it had none, it must read the
	// products' epochs again.
	KeepInstance(ctx context.Context, instance Instance, ttl time.Duration) (shops int, lapsed bool, err error)
	// LeaveInstance ends the lease of an instance.
	LeaveInstance(ctx context.Context, instance string) error
	// Instances lists the instances that have a lease.
	Instances(ctx context.Context) ([]Instance, error)

	// TakeOver begins a takeover: a new epoch with seller = store, not open, if the product's
	// epoch is still seen (else ErrEpoch). Letters are treated as in OpenEpoch. Rebuilding is
	// cleared. If the store is the seller in that epoch already, nothing changes. A product
	// that was never preheated, or that has no ledger, is wrong_state.
	TakeOver(ctx context.Context, id uint32, seen uint64, actor Actor) (seckill.Product, error)
	// Acknowledge records that an instance makes no promise below the given epoch any more, and
	// has written all that it made. It counts for this epoch alone. A late acknowledgement of
	// an older epoch does not replace it.
	Acknowledge(ctx context.Context, id uint32, epoch uint64, instance string) error
	// OpenStore completes a takeover: the store sells from now on. It reports whether the store
	// is open, which needs that every instance with a lease has acknowledged the epoch.
	// ErrEpoch if the product's epoch is not the given one, or its seller not the store.
	//
	// All products of a limit group open together, except those that have ended. While the
	// ledger sells one of them, or a promise of one is not written, the store cannot know a
	// buyer's live units.
	OpenStore(ctx context.Context, id uint32, epoch uint64) (bool, error)
}

// Instance is a process that sells or writes orders.
type Instance struct {
	Name   string
	Shop   bool     // it sells, and its ledger answers; not set by Instances
	Silent []uint32 // ids of products whose ledger does not answer, in order
}
