package ledger

import (
	"context"
	"errors"
)

// Bound is a ledger that belongs to one store and that outsiders can give to
// another while it is used: they empty it, and who comes first has it.
//
// Once another store has it, no method of the ledger, nor of its queue, reads
// or changes a sale of that store; it fails with ErrOtherStore instead.
type Bound interface {
	// CheckStore fails with ErrOtherStore if the ledger is another store's. One
	// that is nobody's is no error: it will be this store's.
	CheckStore(ctx context.Context) error
	// Rebind makes a ledger that is nobody's this store's, with whatever a former
	// owner has left in it, and fails with ErrOtherStore if it is another's. While
	// the part of the ledger is away that says whose it is, shards may be built
	// all the same where this store has built before: who names those that it will
	// build is then told nil if all of them lie there.
	Rebind(ctx context.Context, build ...Shard) error
}

// ErrOtherStore says that the ledger belongs to another store. Two stores on
// one ledger would confirm each other's orders and rebuild each other's
// products.
var ErrOtherStore = errors.New("the ledger belongs to another store")

// CheckStore asks a ledger whether it still is its store's; nil for one that
// nobody could take away.
func CheckStore(ctx context.Context, l Ledger) error {
	if bound, ok := l.(Bound); ok {
		return bound.CheckStore(ctx)
	}
	return nil
}

// Rebind makes a ledger this store's that has lost its owner; nil for one that
// nobody could take away.
func Rebind(ctx context.Context, l Ledger, build ...Shard) error {
	if bound, ok := l.(Bound); ok {
		return bound.Rebind(ctx, build...)
	}
	return nil
}

// ErrDamaged says that something is in the ledger's place that no ledger wrote.
// The products concerned are to be recovered.
var ErrDamaged = errors.New("the ledger is damaged")
