package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// bindTimeout bounds the binding at a start, which must not wait for a server
// that takes no writes for now.
const bindTimeout = time.Second

// ErrOtherStore says that the keys under the prefix are the ledger of another
// store. Two stores on one ledger would confirm each other's orders and rebuild
// each other's products.
var ErrOtherStore = errors.New("the ledger belongs to another store")

// Bind makes this the ledger of the store with that identity, if it is nobody's
// yet, and fails with ErrOtherStore if it is another's. A server that loses its
// data forgets whose it was, and one that takes no writes cannot note it: every
// Install binds again, before it writes.
//
// Call it before the ledger is used.
func (l *Ledger) Bind(ctx context.Context, store string) error {
	l.store = store
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	err := l.bind(ctx)
	if err != nil && !errors.Is(err, ErrOtherStore) {
		l.opt.Logger.Warn("it was not noted whose ledger this is; the next rebuild does", "error", err)
		return nil
	}
	return err
}

func (l *Ledger) bind(ctx context.Context) error {
	if l.store == "" {
		return nil
	}
	bound, err := l.bound(ctx, boundScript)
	if err == nil && bound == "" {
		bound, err = l.bound(ctx, bindScript, l.store)
	}
	if err != nil {
		return fmt.Errorf("bind the ledger to its store: %w", err)
	}
	if bound != l.store {
		return fmt.Errorf("%w: keys that begin with %q are of store %s, this is %s; set another redis.prefix, or, "+
			"if this database replaces that one for good, stop every instance and run `redis-cli DEL '%s'`",
			ErrOtherStore, l.keys.prefix, bound, l.store, l.keys.store())
	}
	return nil
}

// bound is what a script says of whose ledger this is.
func (l *Ledger) bound(ctx context.Context, by *script, args ...string) (string, error) {
	reply, err := l.call.told(ctx, by, []string{l.keys.store()}, args)
	if err != nil {
		return "", err
	}
	bound, err := reply.ToString()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errReply, err)
	}
	return bound, nil
}
