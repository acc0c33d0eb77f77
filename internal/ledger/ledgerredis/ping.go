package ledgerredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// pingAlone is how long the first bucket of a Cluster may take before the others are asked
// instead. It is longer than a healthy master needs. It is short enough that the others answer
// before the caller gives up.
const pingAlone = 100 * time.Millisecond

// Ping reports whether the ledger can be written; of a Cluster, whether a part of it can. It
// asks the first bucket, and the others only if that does not answer: their products can still
// be sold.
func (l *Ledger) Ping(ctx context.Context) error {
	if l.call.client.Mode() != rueidis.ClientModeCluster {
		return l.pingBucket(ctx, 0)
	}
	alone, cancel := context.WithTimeout(ctx, pingAlone)
	defer cancel()
	cause := l.pingBucket(alone, 0)
	if cause == nil {
		return nil
	}
	others := make(chan error, buckets-1)
	for bucket := 1; bucket < buckets; bucket++ {
		go func() { others <- l.pingBucket(ctx, bucket) }()
	}
	for range cap(others) {
		if <-others == nil {
			return nil
		}
	}
	return cause
}

func (l *Ledger) pingBucket(ctx context.Context, bucket int) error {
	if _, err := l.call.runUnreplicated(ctx, pingScript, []string{l.keys.queue(bucket)}, nil); err != nil {
		return fmt.Errorf("reach the ledger: %w", err)
	}
	return nil
}
