package ledgermem

import (
	"context"
	"fmt"

	"seckill/internal/ledger"
)

// Audit reads the marks stripe by stripe, each in a step of its own: calls are
// served in between.
func (l *Ledger) Audit(ctx context.Context, shard ledger.Shard, each func(ledger.Mark)) (ledger.Audit, error) {
	var counted ledger.Audit
	var first figures
	var marks []ledger.Mark
	steady := true
	for i, stripes := 0, 1; i < stripes; i++ {
		marks = marks[:0]
		known := false
		err := l.submit(ctx, func(r *round) error {
			sh := r.state.shards[keyOf(shard)]
			if sh == nil {
				return nil
			}
			if i == 0 {
				first, stripes = sh.figures, len(sh.stripes)
			}
			known = sh.epoch == first.epoch && len(sh.stripes) == stripes
			if known {
				marks = sh.stripes[i].appendTo(marks)
				steady = steady && sh.marked == first.marked && sh.orders == first.orders && sh.releases == first.releases
			}
			return nil
		})
		if err != nil {
			return ledger.Audit{}, fmt.Errorf("audit: %w", err)
		}
		if !known {
			return ledger.Audit{}, nil
		}
		for _, m := range marks {
			if m.Quantity > 0 {
				counted.Units += int64(m.Quantity)
				counted.Orders++
			}
			each(m)
		}
	}
	counted.Epoch, counted.Steady, counted.Marked, counted.Live = first.epoch, steady, first.marked, first.orders
	return counted, nil
}

// appendTo appends the orders of all the stripe's marks.
func (s *stripe) appendTo(marks []ledger.Mark) []ledger.Mark {
	for buyer, m := range s.marks {
		for i := range m.size() {
			o := m.at(i)
			marks = append(marks, ledger.Mark{Buyer: buyer, OrderNo: o.no, Quantity: int(o.quantity), Key: o.key})
		}
	}
	return marks
}
