package ledgerredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"seckill/internal/ledger"
)

// An audit looks at so many marks a step at most, which takes the server half a
// millisecond (2 µs a mark: BenchmarkAudit), and rests between the steps twice
// as long as a step took. More than auditMost would take it minutes, and are not
// read; that all are gone is seen at any size.
const (
	auditCount = 256
	auditShare = 2
	auditMost  = 2_000_000
)

// errManyMarks says that there are more marks than are read.
var errManyMarks = errors.New("too many marks to read")

// Audit reads what the marks hold of a product. A scan shows a mark twice only
// while the hash shrinks, which takes releases or a sweep in the middle of it, or
// where it begins anew (script/walk.lua); who finds a difference counts again.
func (l *Ledger) Audit(ctx context.Context, shard ledger.Shard, each func(ledger.Mark)) (ledger.Audit, error) {
	keys := []string{l.keys.shard(shard), l.keys.group(shard), l.keys.mark(shard)}
	product := decimal(uint64(shard.Product))
	var counted ledger.Audit
	var first auditFigures
	pace := newPace(auditCount)
	counted.Steady = true
	for cursor := "0"; ; {
		start := time.Now()
		step, err := l.auditStep(ctx, keys, product, cursor, pace)
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
		step.read(&counted, each)
		if step.next == "0" {
			counted.Epoch, counted.Marked, counted.Live = uint64(first.epoch), first.marked, first.orders
			return counted, nil
		}
		cursor = step.next
		rest(ctx, auditShare*time.Since(start))
	}
}

// auditFigures are of the shard: one of them changes with every order that
// comes or goes.
type auditFigures struct{ epoch, releases, marked, orders int64 }

// auditStep is one step's reply of script/audit.lua.
type auditStep struct {
	next       string
	figures    auditFigures
	generation string
	found      []rueidis.RedisMessage // buyer, mark, buyer, mark …
}

func (l *Ledger) auditStep(ctx context.Context, keys []string, product, cursor string, pace *pace) (step auditStep, err error) {
	reply, err := l.call.told(ctx, auditScript, keys, []string{product, cursor, pace.count(), strconv.Itoa(auditMost)})
	if err != nil {
		return step, err
	}
	parts, err := reply.ToArray()
	if err == nil && len(parts) == 0 {
		return step, errManyMarks
	}
	if err != nil || len(parts) != 7 {
		return step, fmt.Errorf("%w: %d parts, %w", errReply, len(parts), err)
	}
	f := &step.figures
	for i, figure := range []*int64{&f.epoch, &f.releases, &f.marked, &f.orders} {
		if *figure, err = parts[i+1].AsInt64(); err != nil {
			return step, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	for i, text := range map[int]*string{0: &step.next, 5: &step.generation} {
		if *text, err = parts[i].ToString(); err != nil {
			return step, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	if step.found, err = parts[6].ToArray(); err != nil || len(step.found)%2 != 0 {
		return step, fmt.Errorf("%w: %d parts of marks, %w", errReply, len(step.found), err)
	}
	var bytes int64
	for i := 1; i < len(step.found); i += 2 {
		mark, _ := step.found[i].ToString() // what is none has no bytes
		bytes += int64(len(mark))
	}
	pace.saw(bytes)
	return step, nil
}

// read hands over what the step found, and counts it. What is no mark holds
// nothing.
func (s *auditStep) read(counted *ledger.Audit, each func(ledger.Mark)) {
	for i := 0; i < len(s.found); i += 2 {
		buyer, _ := s.found[i].ToString()
		text, _ := s.found[i+1].ToString()
		orders, err := decodeMark(text)
		if err != nil {
			continue
		}
		for _, o := range orders {
			if o.generation != s.generation {
				continue
			}
			if o.quantity > 0 {
				counted.Units += int64(o.quantity)
				counted.Orders++
			}
			each(ledger.Mark{Buyer: buyer, OrderNo: o.no, Quantity: o.quantity, Key: o.key})
		}
	}
}
