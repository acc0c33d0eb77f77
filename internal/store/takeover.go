package store

import (
	"context"
	"time"

	"seckill"
)

// Takeovers moves the sale of a product from the ledger to the store (protocol
// 5). At each epoch there is one seller. OpenEpoch moves the sale back.
type Takeovers interface {
	// KeepInstance takes or renews the lease of an instance for ttl. It returns how
	// many shops have a lease then, and whether the instance had none: what it
	// knows of the products' epochs is to be read again then.
	KeepInstance(ctx context.Context, instance Instance, ttl time.Duration) (shops int, lapsed bool, err error)
	// LeaveInstance ends the lease of an instance.
	LeaveInstance(ctx context.Context, instance string) error
	// Instances lists those whose lease stands.
	Instances(ctx context.Context) ([]Instance, error)

	// TakeOver begins a takeover: a new epoch with seller = store, not open, if
	// the product's epoch is still seen (else ErrEpoch). Letters are held as in
	// OpenEpoch. Rebuilding is taken back. If the store is the seller in that epoch
	// already, nothing changes. A product that was never preheated, or that has no
	// ledger, is wrong_state.
	TakeOver(ctx context.Context, id uint32, seen uint64, actor Actor) (seckill.Product, error)
	// Acknowledge says that an instance makes no promise of an epoch below the
	// given one any more, and has written all that it made. It counts for this
	// epoch alone, and a late one of an older epoch does not take it back.
	Acknowledge(ctx context.Context, id uint32, epoch uint64, instance string) error
	// OpenStore completes a takeover: the store sells from now on. It does so only
	// if the product's epoch is the given one and its seller the store (else
	// ErrEpoch), and every instance whose lease stands has acknowledged that
	// epoch; it reports whether the store is open. The products of a limit group
	// open together, those that have ended aside: as long as the ledger sells one
	// of them, or a promise of one is not written, the store cannot tell who is at
	// the limit.
	OpenStore(ctx context.Context, id uint32, epoch uint64) (bool, error)
}

// Instance is a process that sells or writes orders.
type Instance struct {
	Name   string
	Shop   bool     // it sells, and its ledger answers it; not told by Instances
	Silent []uint32 // products whose ledger does not answer it, by id
}
