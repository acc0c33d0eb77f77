package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

const (
	// intactTimeout bounds one look, and one step of making room. While a slot
	// moves, a script that names a key which is not there may be refused for long.
	intactTimeout = 250 * time.Millisecond
	// roomMost is how many entries one step of making room looks at.
	roomMost = 256
)

// Intact looks for the oldest entry of the shard that is not acknowledged. After a
// power cut it can be missing, or stand where no worker is given it: Redis may load
// an append-only file that ends inside a script, and apply that part of the script
// at the load after it.
//
// If the server does not let it look, it reports true: the next look will tell.
func (l *Ledger) Intact(ctx context.Context, shard ledger.Shard) (bool, error) {
	bucket := bucketOf(shard.Group, shard.Index)
	brief, cancel := context.WithTimeout(ctx, intactTimeout)
	defer cancel()
	reply, err := l.call.told(brief, intactScript, []string{l.keys.out(bucket), l.keys.open(bucket, shard.Product)}, []string{workerGroup})
	switch {
	case isDamage(err):
		return false, nil
	case errors.Is(err, ledger.ErrNotExecuted) && ctx.Err() == nil:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look for the oldest entry: %w", err)
	}
	intact, err := reply.AsInt64()
	if err != nil {
		return false, fmt.Errorf("look for the oldest entry: %w: %w", errReply, err)
	}
	return intact == 1, nil
}

// makeRoom makes the shard's part of the outbox intact: entries that are gone are
// no longer waited for, and those that no worker would be given are handed back.
// What this instance or another remembers of the former was offered again before. A
// failure is not the install's: the next look tells.
func (l *Ledger) makeRoom(ctx context.Context, shard ledger.Shard) {
	bucket, product := bucketOf(shard.Group, shard.Index), decimal(uint64(shard.Product))
	keys := []string{l.keys.out(bucket), l.keys.queue(bucket), l.keys.open(bucket, shard.Product)}
	var gone int64
	for rank := int64(0); rank >= 0; {
		next, dropped, err := l.makeRoomFrom(ctx, keys, product, rank)
		if err != nil {
			l.opt.Logger.Warn("entries of the outbox not checked", "product", shard.Product, "shard", shard.Index, "error", err)
			break
		}
		rank, gone = next, gone+dropped
	}
	if gone > 0 {
		l.opt.Logger.Warn("entries are gone from the outbox, and no longer waited for",
			"product", shard.Product, "shard", shard.Index, "entries", gone)
	}
}

// makeRoomFrom is one step, and returns where the next begins; -1 at the end.
func (l *Ledger) makeRoomFrom(ctx context.Context, keys []string, product string, rank int64) (next, gone int64, err error) {
	brief, cancel := context.WithTimeout(ctx, intactTimeout)
	defer cancel()
	reply, err := l.call.heard(brief, roomScript, keys, []string{product, strconv.FormatInt(rank, 10), strconv.Itoa(roomMost), workerGroup, returnedName})
	if err != nil {
		return 0, 0, err
	}
	says, err := reply.AsIntSlice()
	if err != nil || len(says) != 2 {
		return 0, 0, fmt.Errorf("%w: %d figures, %w", errReply, len(says), err)
	}
	return says[0], says[1], nil
}

// isDamage reports whether a script ended because a key holds something else, or
// what the script cannot read.
func isDamage(err error) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "WRONGTYPE") || strings.HasPrefix(reply.Error(), "user_script:"))
}

// asDamage says so in the port's words.
func asDamage(err error) error {
	if isDamage(err) {
		return fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	return err
}
