package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill/internal/ledger"
)

// One step of an audit looks at this many marks at most, which takes the server half a
// millisecond (2 µs a mark: BenchmarkAudit). Then it rests twice as long as the step took. An
// audit of more than auditMost marks would take minutes, so they are not read. That all marks
// are gone is noticed at any size.
const (
	auditCount = 256
	auditShare = 2
	auditMost  = 2_000_000
)

// errManyMarks means that there are more marks than an audit reads.
var errManyMarks = errors.New("too many marks to read")

// Audit counts the live orders in the marks. A scan shows a mark twice only if the hash
// shrinks, by releases or a sweep during the scan, or if the scan starts again
// (script/walk.lua). A caller that finds a difference must count again.
func (l *Ledger) Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	var counted ledger.Audit
	var first auditFigures
	pace := newPace(auditCount)
	counted.Steady = true
	for cursor := "0"; ; {
		start := time.Now()
		step, err := l.auditStep(ctx, shard, cursor, pace.count())
		if errors.Is(err, errManyMarks) {
			return ledger.Audit{}, nil
		}
		if err != nil {
			return ledger.Audit{}, fmt.Errorf("audit: %w", err)
		}
		if cursor == "0" {
			first = step.figures
		}
		if step.figures.epoch != first.epoch {
			return ledger.Audit{}, nil
		}
		counted.Steady = counted.Steady && step.figures == first
		counted.Units += step.found.units
		counted.Orders += step.found.orders
		if step.next == "0" {
			counted.Epoch, counted.Marked, counted.Live = uint64(first.epoch), first.marked, first.orders
			return counted, nil
		}
		cursor = step.next
		pace.saw(step.found.bytes)
		rest(ctx, auditShare*time.Since(start))
	}
}

// auditFigures are figures of the shard. At least one changes with every order that is added or
// released.
type auditFigures struct{ epoch, releases, marked, orders int64 }

// auditStep is the reply of script/audit.lua.
type auditStep struct {
	next    string
	figures auditFigures
	found   struct{ units, orders, bytes int64 } // in the marks
}

func (l *Ledger) auditStep(ctx context.Context, shard ledger.Shard, cursor, count string) (step auditStep, err error) {
	keys := []string{l.keys.shard(shard), l.keys.group(shard), l.keys.mark(shard)}
	reply, err := l.call.runUnreplicated(ctx, auditScript, keys, []string{decimal(uint64(shard.Product)), cursor, count, strconv.Itoa(auditMost)})
	if err != nil {
		return step, err
	}
	parts, err := reply.ToArray()
	if err == nil && len(parts) == 0 {
		return step, errManyMarks
	}
	if err != nil || len(parts) != 8 {
		return step, fmt.Errorf("%w: %d parts, %w", errReply, len(parts), err)
	}
	if step.next, err = parts[0].ToString(); err != nil {
		return step, fmt.Errorf("%w: %w", errReply, err)
	}
	f, found := &step.figures, &step.found
	for i, figure := range []*int64{&f.epoch, &f.releases, &f.marked, &f.orders, &found.units, &found.orders, &found.bytes} {
		if *figure, err = parts[i+1].AsInt64(); err != nil {
			return step, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	return step, nil
}
