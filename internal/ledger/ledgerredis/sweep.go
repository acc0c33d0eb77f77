package ledgerredis

import (
	"context"
	"fmt"
	"time"

	"seckill/internal/ledger"
)

// One step of a sweep looks at this many marks at most. Then it rests ten times as long as the
// step took. It may take minutes for ten million marks, and does not slow a busy server down.
const (
	sweepCount   = 128
	sweepShare   = 10
	sweepTimeout = time.Second
)

// sweepLater drops orders of dead generations in the background. If the program ends or the
// server is unavailable, the rest is dropped when the buyer's mark is next written, or after
// the next install.
func (l *Ledger) sweepLater(shard ledger.Shard) {
	if l.stop.Err() != nil {
		return
	}
	l.running.Go(func() {
		pace := newPace(sweepCount)
		for cursor := "0"; ; {
			start := time.Now()
			next, err := l.sweepStep(shard, cursor, pace)
			if err != nil {
				l.opt.Logger.Warn("sweep of old marks stopped early", "group", shard.Group, "shard", shard.Index, "error", err)
				return
			}
			if next == "0" || l.stop.Err() != nil {
				return
			}
			cursor = next
			rest(l.stop, sweepShare*time.Since(start))
		}
	})
}

func (l *Ledger) sweepStep(shard ledger.Shard, cursor string, pace *pace) (next string, err error) {
	ctx, cancel := context.WithTimeout(l.stop, sweepTimeout)
	defer cancel()
	reply, err := l.call.runUnreplicated(ctx, sweepScript, []string{l.keys.group(shard), l.keys.mark(shard)},
		[]string{cursor, pace.count()})
	if err != nil {
		return "", err
	}
	parts, err := reply.ToArray()
	if err != nil || len(parts) != 2 {
		return "", fmt.Errorf("%w: %d parts, %w", errReply, len(parts), err)
	}
	bytes, err := parts[1].AsInt64()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errReply, err)
	}
	pace.saw(bytes)
	return parts[0].ToString()
}
