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
	// intactTimeout bounds one check, and one step of repairOutbox. While a slot moves, a script
	// with a missing key may be refused for a long time.
	intactTimeout = 250 * time.Millisecond
	// roomMost bounds the entries of one step of repairOutbox.
	roomMost = 256
)

// Intact looks for the shard's oldest unacknowledged entry. After a power cut the entry can be
// missing, or be at a position from which no worker gets it. The reason is that Redis may load
// an append-only file that ends inside a script, and apply that part of the script at the next
// load.
//
// If the server does not let it look, Intact reports true, and the next check decides.
func (l *Ledger) Intact(ctx context.Context, shard ledger.Shard) (bool, error) {
	bucket := bucketOf(shard.Group, shard.Index)
	brief, cancel := context.WithTimeout(ctx, intactTimeout)
	defer cancel()
	reply, err := l.call.runUnreplicated(brief, intactScript, []string{l.keys.out(bucket), l.keys.open(bucket, shard.Product)}, []string{workerGroup})
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

// repairOutbox repairs the shard's part of the outbox. Missing entries are removed from the open
// set, and entries that no worker would get are returned to the queue. The claims of missing
// entries that an instance remembers were offered again before. If repairOutbox fails, the install
// does not; the next check decides.
func (l *Ledger) repairOutbox(ctx context.Context, shard ledger.Shard) {
	bucket, product := bucketOf(shard.Group, shard.Index), decimal(uint64(shard.Product))
	keys := []string{l.keys.out(bucket), l.keys.queue(bucket), l.keys.open(bucket, shard.Product)}
	var gone int64
	for rank := int64(0); rank >= 0; {
		next, dropped, err := l.repairOutboxFrom(ctx, keys, product, rank)
		if err != nil {
			l.opt.Logger.Warn("entries of the outbox not checked", "product", shard.Product, "shard", shard.Index, "error", err)
			break
		}
		rank, gone = next, gone+dropped
	}
	if gone > 0 {
		l.opt.Logger.Warn("entries are missing in the outbox and were removed from the open set",
			"product", shard.Product, "shard", shard.Index, "entries", gone)
	}
}

// repairOutboxFrom runs one step, and returns the rank at which the next begins, or -1 at the end.
func (l *Ledger) repairOutboxFrom(ctx context.Context, keys []string, product string, rank int64) (next, gone int64, err error) {
	brief, cancel := context.WithTimeout(ctx, intactTimeout)
	defer cancel()
	reply, err := l.call.runReplicated(brief, roomScript, keys, []string{product, strconv.FormatInt(rank, 10), strconv.Itoa(roomMost), workerGroup, returnedName})
	if err != nil {
		return 0, 0, err
	}
	says, err := reply.AsIntSlice()
	if err != nil || len(says) != 2 {
		return 0, 0, fmt.Errorf("%w: %d figures, %w", errReply, len(says), err)
	}
	return says[0], says[1], nil
}

// isDamage reports whether a script failed because a key has another type or unreadable data.
func isDamage(err error) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "WRONGTYPE") || strings.HasPrefix(reply.Error(), "user_script:"))
}

// asDamage wraps such an error in ledger.ErrDamaged.
func asDamage(err error) error {
	if isDamage(err) {
		return fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	return err
}
