package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill/internal/ledger"
)

// An audit looks at so many marks a step at most, which takes the server about half a
// millisecond (2 µs a mark: BenchmarkAudit), and rests between the steps twice
// as long as a step took: some 150,000 marks a second. More than auditMost
// would take it minutes, and are not counted; that all are gone is seen at any
// size.
const (
	auditCount = 256
	auditShare = 2
	auditMost  = 2_000_000
)

// errManyMarks says that there are more marks than are counted.
var errManyMarks = errors.New("too many marks to count")

var _ ledger.Auditing = (*Ledger)(nil)

// Audit counts what the marks hold of a product. A scan shows a mark twice only
// while the hash shrinks, which takes releases or a sweep in the middle of it;
// who finds a difference counts again.
func (l *Ledger) Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	keys := []string{l.keys.shard(shard), l.keys.group(shard), l.keys.mark(shard)}
	product := decimal(uint64(shard.Product))
	var counted ledger.Audit
	var before [4]int64
	pace := newPace(auditCount)
	for cursor := "0"; ; {
		start := time.Now()
		next, units, orders, now, err := l.auditStep(ctx, keys, product, cursor, pace)
		if errors.Is(err, errManyMarks) {
			return ledger.Audit{}, nil
		}
		if err != nil {
			return ledger.Audit{}, fmt.Errorf("audit: %w", err)
		}
		if cursor == "0" {
			before = now
		}
		if now != before {
			return ledger.Audit{}, nil
		}
		counted.Units += units
		counted.Orders += orders
		if next == "0" {
			counted.Steady, counted.Marked, counted.Live = true, now[2], now[3]
			return counted, nil
		}
		cursor = next
		rest(ctx, auditShare*time.Since(start))
	}
}

// auditStep takes one step. What it says of the shard is epoch, releases,
// marked and orders: one of them changes with every order that comes or goes.
func (l *Ledger) auditStep(ctx context.Context, keys []string, product, cursor string, pace *pace) (next string, units, orders int64, figures [4]int64, err error) {
	reply, err := l.call.told(ctx, auditScript, keys, []string{product, cursor, pace.count(), strconv.Itoa(auditMost)})
	if err != nil {
		return "", 0, 0, figures, err
	}
	parts, err := reply.ToArray()
	if err == nil && len(parts) == 0 {
		return "", 0, 0, figures, errManyMarks
	}
	if err != nil || len(parts) != 8 {
		return "", 0, 0, figures, fmt.Errorf("%w: %d parts, %w", errReply, len(parts), err)
	}
	if next, err = parts[0].ToString(); err != nil {
		return "", 0, 0, figures, fmt.Errorf("%w: %w", errReply, err)
	}
	var numbers [7]int64
	for i := range numbers {
		if numbers[i], err = parts[i+1].AsInt64(); err != nil {
			return "", 0, 0, figures, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	pace.saw(numbers[6])
	return next, numbers[0], numbers[1], [4]int64(numbers[2:6]), nil
}
