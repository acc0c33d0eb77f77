package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

// bindTimeout bounds the binding and the look at it: neither a start nor a round
// of the keeper must wait for a server that is away or takes no writes for now.
const bindTimeout = time.Second

// Bind makes this the ledger of the store with that identity, if it is nobody's
// yet, and fails with ErrOtherStore if it is another's. A server that loses its
// data forgets whose it was, and one that takes no writes cannot note it: Rebind
// binds again, and so does every Install before it writes.
//
// Call it before the ledger is used. From then on no call touches what another
// store has installed meanwhile: buckets are marked (script/owner.lua).
func (l *Ledger) Bind(ctx context.Context, store string) error {
	l.call.store = store
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	err := l.call.bind(ctx)
	if err != nil && !errors.Is(err, ledger.ErrOtherStore) {
		l.opt.Logger.Warn("it was not noted whose ledger this is; the next rebuild does", "error", err)
		return nil
	}
	return err
}

// CheckStore fails with ErrOtherStore if another store has the ledger now. One
// that is nobody's, because it lost everything, will be this store's.
func (l *Ledger) CheckStore(ctx context.Context) error {
	if l.call.store == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	bound, err := l.call.bound(ctx, boundScript)
	if err != nil {
		return fmt.Errorf("read whose ledger this is: %w", err)
	}
	return l.call.judge(bound)
}

// Rebind is Bind of a ledger that has lost its binding: the server lost all, or
// an operator gave it to whoever comes. Buckets that bear a former owner's mark
// are then taken by the calls that meet it (caller.retake).
//
// While the binding cannot be read, because its master of a Cluster is away,
// buckets that bear this store's mark are this store's: another that has been
// given the ledger meanwhile has nothing there yet, or the mark would be its own.
func (l *Ledger) Rebind(ctx context.Context, build ...ledger.Shard) error {
	brief, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	err := l.call.bind(brief)
	if len(build) > 0 && errors.Is(err, errNoBinding) && l.ownsAll(ctx, build) {
		return nil
	}
	return err
}

// bindFor is Rebind that waits for a server which does not answer, as all the
// steps of an install do.
func (l *Ledger) bindFor(ctx context.Context, shard ledger.Shard) error {
	if err := l.Rebind(ctx, shard); !errors.Is(err, errNoBinding) {
		return err
	}
	return l.call.bind(ctx)
}

// ownsAll reports whether all the buckets of shards bear this store's mark.
func (l *Ledger) ownsAll(ctx context.Context, shards []ledger.Shard) bool {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	asked := make(map[int]bool)
	for _, shard := range shards {
		bucket := bucketOf(shard.Group, shard.Index)
		if asked[bucket] {
			continue
		}
		asked[bucket] = true
		if owner, err := l.call.owner(ctx, bucket, boundScript); err != nil || owner != l.call.store {
			return false
		}
	}
	return true
}

// errNoBinding says that it cannot be read whose ledger this is.
var errNoBinding = errors.New("its binding cannot be read")

func (c *caller) bind(ctx context.Context) error {
	if c.store == "" {
		return nil
	}
	bound, err := c.bound(ctx, boundScript)
	if err != nil {
		return fmt.Errorf("bind the ledger to its store: %w: %w", errNoBinding, err)
	}
	if bound == "" {
		if bound, err = c.bound(ctx, bindScript, c.store); err != nil {
			return fmt.Errorf("bind the ledger to its store: %w", err)
		}
	}
	return c.judge(bound)
}

// bound is what a script says of whose ledger this is.
func (c *caller) bound(ctx context.Context, by *script, args ...string) (string, error) {
	return c.owner(ctx, 0, by, args...)
}

// owner is what a script says of whose a bucket is.
func (c *caller) owner(ctx context.Context, bucket int, by *script, args ...string) (string, error) {
	reply, err := c.told(ctx, by, []string{c.keys.store(bucket)}, args)
	if err != nil {
		return "", err
	}
	bound, err := reply.ToString()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errReply, err)
	}
	return bound, nil
}

// judge refuses a ledger that is bound to another store.
func (c *caller) judge(bound string) error {
	if bound == "" || bound == c.store {
		return nil
	}
	return fmt.Errorf("%w: keys that begin with %q are of store %s, this is %s; set another redis.prefix, or, "+
		"if this database replaces that one for good, stop every instance and run `redis-cli DEL '%s'`",
		ledger.ErrOtherStore, c.keys.prefix, bound, c.store, c.keys.store(0))
}

// signed is a call of a script with what owner.lua wants, where it has that. It
// appends to what it is given. A ledger that is anybody's has no marks, and
// names another of its keys instead: while a slot moves, a call that names a key
// that is nowhere has to wait.
func (c *caller) signed(s *script, keys, args []string) (with, and []string) {
	if !s.owned {
		return keys, args
	}
	mark := keys[0]
	if c.store != "" {
		mark = c.keys.storeOf(mark)
	}
	return append(keys, mark), append(args, c.store)
}

// retake makes buckets this store's that bear another's mark, given their store
// keys: the ledger was bound to that one before an operator gave it to this. If
// it is not this store's, the error is ErrOtherStore.
//
// The binding decides, in a step of its own, as it lies in another slot: between
// it and the mark somebody may empty the server and bind it anew. Such a one
// finds the mark, and takes the bucket back in the same way.
func (c *caller) retake(ctx context.Context, stores ...string) error {
	bound, err := c.bound(ctx, boundScript)
	if err != nil {
		return fmt.Errorf("read whose ledger this is: %w", err)
	}
	if bound == "" {
		return fmt.Errorf("%w: its binding is gone, and what is there bears the mark of another", ledger.ErrOtherStore)
	}
	if err := c.judge(bound); err != nil {
		return err
	}
	for _, store := range stores {
		if _, err := c.told(ctx, takeScript, []string{store}, []string{c.store}); err != nil {
			return fmt.Errorf("take a bucket over: %w", err)
		}
	}
	return nil
}

// retake is the caller's for every bucket in which another store's mark refused
// a run, whose result is then that of another try, or why there was none.
func (q *outboxQueue) retake(ctx context.Context, results []rueidis.RedisResult, calls []queueCall, whole func(int) rueidis.Completed) {
	var refused []int
	var stores []string
	for i, result := range results {
		if err := result.Error(); err != nil && meaningOf(err) == othersBucket {
			refused = append(refused, i)
			stores = append(stores, q.keys.storeOf(calls[i].keys[0]))
		}
	}
	if len(refused) == 0 {
		return
	}
	if err := q.call.retake(ctx, stores...); err != nil {
		for _, i := range refused {
			results[i] = rueidis.NewErrorResult(err)
		}
		return
	}
	q.again(ctx, results, othersBucket, whole)
}
