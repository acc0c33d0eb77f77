package ledger

import (
	"context"
	"errors"
)

// Auditing is a ledger whose marks can be compared with the store's orders.
type Auditing interface {
	// Audit hands every order of the product that a shard's marks hold to each,
	// those of quantity 0 too, which are dead and remembered for their keys, and
	// counts the live ones, while others are served. An order that is held from
	// the beginning to the end is handed over; one that comes or goes meanwhile
	// may be, and any may be twice. Shard.Epoch is ignored.
	Audit(ctx context.Context, shard Shard, each func(Mark)) (Audit, error)
}

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

// Audit is what the marks of a shard hold of a product, and what the shard's
// figures say that they hold.
type Audit struct {
	// Epoch is the shard's from the beginning to the end; 0 when it changed
	// meanwhile, or there are more marks than the ledger walks: then not all were
	// handed over, and the rest is without meaning.
	Epoch uint64
	// Steady is false, and the counts without meaning, when orders came or went
	// meanwhile.
	Steady        bool
	Units, Orders int64 // counted in the marks
	Marked, Live  int64 // units and orders as the figures have them
}

// Inspecting is a ledger in whose place outsiders can put something else, and
// that can tell.
type Inspecting interface {
	// Sound reports whether what a shard is kept in, beside the figures that Read
	// reads, can be used, and whether those balance. One that is not sound is to
	// be recovered, which mends it. Shard.Epoch is ignored.
	Sound(ctx context.Context, shard Shard) (bool, error)
}

// ErrDamaged says that something is in the ledger's place that no ledger wrote.
// The products concerned are to be recovered.
var ErrDamaged = errors.New("the ledger is damaged")
