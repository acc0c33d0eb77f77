package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

// soundTimeout bounds a look. While a slot moves, a look at keys of which some
// are not there yet may be refused for long.
const soundTimeout = 250 * time.Millisecond

var _ ledger.Inspecting = (*Ledger)(nil)

// Sound reports whether the keys of a shard are what they should be. Where the
// server does not let it look, it says so: the next look will.
func (l *Ledger) Sound(ctx context.Context, shard ledger.Shard) (bool, error) {
	bucket := bucketOf(shard.Group, shard.Index)
	keys := []string{
		l.keys.shard(shard), l.keys.lane(shard), l.keys.group(shard), l.keys.mark(shard),
		l.keys.queue(bucket), l.keys.open(bucket, shard.Product),
	}
	brief, cancel := context.WithTimeout(ctx, soundTimeout)
	defer cancel()
	reply, err := l.call.told(brief, soundScript, keys, []string{decimal(uint64(shard.Product))})
	if errors.Is(err, ledger.ErrNotExecuted) && ctx.Err() == nil {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at a shard's keys: %w", err)
	}
	sound, err := reply.AsInt64()
	if err != nil {
		return false, fmt.Errorf("look at a shard's keys: %w: %w", errReply, err)
	}
	return sound == 1, nil
}

// isWrongType reports whether the server refused a command because the key
// holds something else.
func isWrongType(err error) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "WRONGTYPE")
}

// asDamage says so in the port's words.
func asDamage(err error) error {
	if isWrongType(err) {
		return fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	return err
}
