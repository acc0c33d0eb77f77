package sale

import (
	"iter"
	"slices"

	"seckill"
	"seckill/internal/ledger"
)

// shardMarks is what a new epoch of a shard remembers: the live orders, and the
// keys of the dead. A key that was forgotten with the ledger would be promised
// again, under a number that the store then has to fail as a duplicate.
type shardMarks struct {
	live, dead []ledger.Mark
}

func (m *shardMarks) add(o *seckill.Order) {
	mark := ledger.Mark{Buyer: o.Buyer, OrderNo: o.OrderNo, Quantity: o.Quantity, Key: o.Key}
	if o.Status.Live() {
		m.live = append(m.live, mark)
		return
	}
	mark.Quantity = 0
	m.dead = append(m.dead, mark)
}

// all is the marks to install: the dead first, from the oldest on, as a ledger
// that was never lost would have them.
func (m *shardMarks) all() iter.Seq2[ledger.Mark, error] {
	// Who has more is sold nothing more, so that none of the others is sold again.
	m.dead = newestOf(m.dead, ledger.MaxReturned)
	return func(yield func(ledger.Mark, error) bool) {
		for _, marks := range [][]ledger.Mark{m.dead, m.live} {
			for _, mark := range marks {
				if !yield(mark, nil) {
					return
				}
			}
		}
	}
}

// newestOf is the marks without those of buyers who have more than most, of
// whom the newest are left; oldest first. It reorders the marks that it is given.
func newestOf(marks []ledger.Mark, most int) []ledger.Mark {
	slices.SortFunc(marks, func(a, b ledger.Mark) int { return seckill.NewestFirst(a.OrderNo, b.OrderNo) })
	have := make(map[string]int)
	kept := slices.DeleteFunc(marks, func(m ledger.Mark) bool {
		have[m.Buyer]++
		return have[m.Buyer] > most
	})
	slices.Reverse(kept)
	return kept
}
