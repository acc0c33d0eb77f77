package outage

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"seckill/test/market"
)

const (
	// returnWithin is how long after its end an order's units may still be on
	// their way back, faults included: what takes longer is a fault of its own.
	returnWithin = market.SettleWithin
	// flagLife is how old the reason of a "sold out" may be (I7).
	flagLife = time.Second
)

// checkNoUndersell is I7 from outside, where it can be decided: "sold out" is
// wrong if, at every moment of the second before, there were certainly as many
// units free as were asked for. Certainly free is what was offered at least,
// less all orders that were created by the answer and may still have held
// their units, and less all that was asked for without a certain answer.
func checkNoUndersell(offered map[uint32]int64, acts []market.Act, rows []row) (decided int, findings []string) {
	taken := make(map[uint32]*timeline)
	of := func(product uint32) *timeline {
		if taken[product] == nil {
			taken[product] = &timeline{}
		}
		return taken[product]
	}
	for _, r := range rows {
		// An order is created after its reservation, which is as old as its queue
		// was long.
		of(r.product).add(r.created.Add(-returnWithin), int64(r.quantity))
		if !r.closed.IsZero() && r.closed.Unix() > 0 {
			of(r.product).add(r.closed.Add(returnWithin), -int64(r.quantity))
		}
	}
	for _, a := range acts {
		if kindOf(a) == unknown {
			of(a.Product).add(a.Called, int64(a.Purchase.Quantity))
			of(a.Product).add(a.Done.Add(returnWithin), -int64(a.Purchase.Quantity))
		}
	}
	for _, t := range taken {
		t.sum()
	}
	for _, a := range acts {
		if kindOf(a) != refused {
			continue
		}
		free := offered[a.Product] - of(a.Product).most(a.Called.Add(-flagLife), a.Done)
		if free >= int64(a.Purchase.Quantity) {
			findings = append(findings, fmt.Sprintf("I7: %s asked for %d of product %d at %s and was told sold_out; at least %d were free",
				a.Buyer, a.Purchase.Quantity, a.Product, a.Called.UTC().Format("15:04:05.000"), free))
		}
		decided++
	}
	return decided, findings
}

// timeline is a sum that changes at instants.
type timeline struct {
	changes []change
}

type change struct {
	at    time.Time
	delta int64
	total int64 // from here to the next
}

func (t *timeline) add(at time.Time, delta int64) {
	t.changes = append(t.changes, change{at: at, delta: delta})
}

func (t *timeline) sum() {
	slices.SortFunc(t.changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(b.delta, a.delta))
	})
	var total int64
	for i := range t.changes {
		total += t.changes[i].delta
		t.changes[i].total = total
	}
}

// most is the highest total of a while.
func (t *timeline) most(from, to time.Time) (highest int64) {
	first := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].at.After(from) })
	if first > 0 {
		highest = t.changes[first-1].total
	}
	for _, c := range t.changes[first:] {
		if c.at.After(to) {
			break
		}
		highest = max(highest, c.total)
	}
	return highest
}
