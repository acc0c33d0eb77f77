package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

// pingAlone is how long the first bucket of a Cluster may take before the others
// are asked instead: longer than a master that is well needs, and so short that
// they have answered before whoever asks gives up.
const pingAlone = 100 * time.Millisecond

// Ping reports whether the ledger, or of a Cluster a part of it, can be written
// and is this store's. Asked is the first bucket, which knows whose it all is;
// while its master is away, those that bear this store's mark can be sold from
// all the same.
func (l *Ledger) Ping(ctx context.Context) error {
	if l.call.client.Mode() != rueidis.ClientModeCluster {
		return l.pingFirst(ctx)
	}
	alone, cancel := context.WithTimeout(ctx, pingAlone)
	defer cancel()
	cause := l.pingFirst(alone)
	if cause == nil || errors.Is(cause, ledger.ErrOtherStore) {
		return cause
	}
	others := make(chan error, buckets-1)
	for bucket := 1; bucket < buckets; bucket++ {
		go func() { others <- l.pingOwn(ctx, bucket) }()
	}
	for range cap(others) {
		if <-others == nil {
			return nil
		}
	}
	return cause
}

// pingFirst asks the bucket that says whose ledger this is.
func (l *Ledger) pingFirst(ctx context.Context) error {
	if err := l.pingBucket(ctx, 0); err != nil {
		return err
	}
	return l.CheckStore(ctx)
}

// pingOwn asks a bucket that something of this store was installed in. In one
// that bears no mark there is nothing to sell, and nothing can be installed
// while the first bucket is away.
func (l *Ledger) pingOwn(ctx context.Context, bucket int) error {
	if err := l.pingBucket(ctx, bucket); err != nil || l.call.store == "" {
		return err
	}
	owner, err := l.call.owner(ctx, bucket, boundScript)
	if err != nil {
		return fmt.Errorf("read whose bucket %d is: %w", bucket, err)
	}
	if owner != l.call.store {
		return fmt.Errorf("%w: bucket %d is of %q", ledger.ErrOtherStore, bucket, owner)
	}
	return nil
}

func (l *Ledger) pingBucket(ctx context.Context, bucket int) error {
	if _, err := l.call.told(ctx, pingScript, []string{l.keys.queue(bucket)}, nil); err != nil {
		return fmt.Errorf("reach the ledger: %w", err)
	}
	return nil
}
