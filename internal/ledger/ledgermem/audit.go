package ledgermem

import (
	"context"
	"fmt"

	"seckill/internal/ledger"
)

// Audit counts the marks stripe by stripe, each in a call of its own, so that other calls run
// in between.
func (l *Ledger) Audit(ctx context.Context, shard ledger.Shard) (ledger.Audit, error) {
	var counted ledger.Audit
	var first figures
	steady := true
	for i, stripes := 0, 1; i < stripes; i++ {
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
				sh.stripes[i].count(&counted)
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
	}
	counted.Epoch, counted.Steady, counted.Marked, counted.Live = first.epoch, steady, first.marked, first.orders
	return counted, nil
}

// count adds the live orders of the stripe's marks.
func (s *stripe) count(counted *ledger.Audit) {
	for _, m := range s.marks {
		for i := range m.size() {
			if o := m.at(i); o.quantity > 0 {
				counted.Units += int64(o.quantity)
				counted.Orders++
			}
		}
	}
}
