package outage

import (
	"fmt"
	"time"

	"seckill"
	"seckill/test/market"
)

// returnWithin is how long units may be on their way back where nobody saw them
// arrive: of an order that failed, and of any while its ledger was in doubt.
const returnWithin = market.SettleWithin

// followWithin is how far the store may be behind the ledger, beside a fault: the
// entries of a worker that was killed wait for some 2 s, and what waited meanwhile
// is written then.
const followWithin = 12 * time.Second

// refusals are those as sold out, and how many of them could be judged.
type refusals struct {
	all, right, wrong int
	doubted           int // of those that are not decided, in doubt
	findings          []string
}

// decided is how many were certainly right, or certainly wrong.
func (r refusals) decided() int { return r.right + r.wrong }

// units are the bounds of what was free of a product, over time.
type units struct {
	low   timeline // certainly free
	loose timeline // and if what had ended lately may not have come back
	high  timeline // free at most
}

// checkNoUndersell is I7 from outside. "Sold out" is wrong if there were
// certainly as many units free as were asked for at every moment of the second
// before the answer, and right if there were certainly fewer at one of them.
// What is neither is not decided. While the ledger is in doubt units may take
// long to come back, and less is wrong.
func (e *evidence) checkNoUndersell() (found refusals) {
	free := e.bounds()
	for _, a := range e.acts {
		if kindOf(a) != refused {
			continue
		}
		found.all++
		u, from, asked := free[a.Product], a.Called.Add(-market.FlagLife), int64(a.Purchase.Quantity)
		inDoubt, certain := e.doubted(a.Product, from, a.Done), &u.low
		if inDoubt {
			certain = &u.loose
		}
		switch least := certain.least(from, a.Done); {
		case least >= asked:
			found.wrong++
			found.findings = append(found.findings, fmt.Sprintf("I7: %s asked for %d of product %d at %s and was told sold_out at %s; at least %d were free (in doubt: %v)",
				a.Buyer, a.Purchase.Quantity, a.Product, a.Called.UTC().Format(exactly), a.Done.UTC().Format(exactly), least, inDoubt))
		case u.high.least(from, a.Done) < asked:
			found.right++
		case inDoubt:
			found.doubted++
		}
	}
	return found
}

const exactly = "15:04:05.000"

// bounds reckons what was free of each product.
func (e *evidence) bounds() map[uint32]*units {
	free := make(map[uint32]*units)
	for id, p := range e.products {
		free[id] = &units{low: timeline{base: p.Stock}, loose: timeline{base: p.Stock}, high: timeline{base: p.Stock}}
	}
	for _, c := range e.changes {
		e.change(free[c.Product], c)
	}
	asked := e.askedFor()
	quantities := make(map[string]row)
	for _, r := range e.rows {
		e.order(free[r.product], r, asked)
		quantities[r.no] = r
	}
	for _, w := range e.held {
		r := quantities[w.no]
		free[r.product].low.hold(w.from, w.to, int64(r.quantity))
	}
	e.unknown(free)
	for _, u := range free {
		u.low.sum()
		u.loose.sum()
		u.high.sum()
	}
	return free
}

// change reckons with a change of stock. Units that are added are surely there
// when it is seen done, and may be as soon as it is recorded; those that are
// taken away the other way round. A ledger that refused to give any has given none,
// unless it was in doubt.
func (e *evidence) change(u *units, c market.StockChange) {
	end, seen := e.settled[c.ID]
	if absent := e.absent[c.ID]; absent.After(c.Begun) {
		c.Begun = absent
	}
	switch {
	case c.Delta > 0:
		u.high.add(c.Begun, c.Delta)
		if seen && end.done {
			u.low.add(end.at, c.Delta)
			u.loose.add(end.at, c.Delta)
		}
	case !seen:
		u.low.add(c.Begun, c.Delta)
		u.loose.add(c.Begun, c.Delta)
	case end.done:
		u.low.add(c.Begun, c.Delta)
		u.loose.add(c.Begun, c.Delta)
		u.high.add(end.at, c.Delta)
	case e.doubted(c.Product, c.Begun, end.at):
		u.low.hold(c.Begun, end.at, -c.Delta)
		u.loose.hold(c.Begun, end.at.Add(returnWithin), -c.Delta)
	}
}

// order reckons with an order. It may hold its units from when it was first
// asked for, and surely does from when its buyer heard of it, or the store had
// it. That it has let them go is known by who saw it, that it may have by the
// store's word.
func (e *evidence) order(u *units, r row, asked askedFor) {
	quantity := int64(r.quantity)
	from := asked.first(r)
	back, late := time.Time{}, time.Time{} // never
	if r.ended() {
		late = r.closed.Add(returnWithin)
		if back = e.back[r.no]; back.IsZero() {
			back = late
		}
	}
	u.low.hold(from, back, quantity)
	u.loose.hold(from, late, quantity)
	switch {
	case r.status == seckill.OrderFailed:
	case r.ended():
		u.high.hold(asked.surely(r), r.closed.Add(-clockGap), quantity)
	default:
		u.high.hold(asked.surely(r), time.Time{}, quantity)
	}
}

// unknown reckons with what was asked for, and has neither a certain answer nor
// an order. It never happened, unless it was lost with its ledger before the
// store had it.
func (e *evidence) unknown(free map[uint32]*units) {
	stored := make(map[buyerKey]bool)
	for _, r := range e.rows {
		stored[buyerKey{r.buyer, r.key}] = r.key != ""
	}
	for _, a := range e.acts {
		if kindOf(a) != unknown || stored[buyerKey{a.Buyer, a.Purchase.Key}] {
			continue
		}
		if until, met := e.doubtedUntil(a.Product, a.Called, a.Called.Add(followWithin)); met {
			free[a.Product].low.hold(a.Called, until, int64(a.Purchase.Quantity))
			free[a.Product].loose.hold(a.Called, until, int64(a.Purchase.Quantity))
		}
	}
}

// request is what one buyer asks for, however often.
type request struct {
	buyer, key string
	product    uint32
}

func requestOf(a market.Act) request { return request{a.Buyer, a.Purchase.Key, a.Product} }

// askedFor knows when orders were asked for, and first heard of.
type askedFor struct {
	request map[request]time.Time
	of      map[string]request // an order's
	heard   map[string]time.Time
}

func (e *evidence) askedFor() askedFor {
	asked := askedFor{make(map[request]time.Time), make(map[string]request), make(map[string]time.Time)}
	for _, a := range e.acts {
		what := requestOf(a)
		if first, known := asked.request[what]; !known || a.Called.Before(first) {
			asked.request[what] = a.Called
		}
		if a.Err != nil {
			continue
		}
		asked.of[a.No] = what
		if first, known := asked.heard[a.No]; !known || a.Done.Before(first) {
			asked.heard[a.No] = a.Done
		}
	}
	return asked
}

// first is when an order was first asked for.
func (a askedFor) first(r row) time.Time {
	what, known := a.of[r.no]
	if !known {
		what = request{r.buyer, r.key, r.product}
	}
	if at, known := a.request[what]; known {
		return at
	}
	return r.created.Add(-returnWithin) // a key that its order has left to another
}

// surely is since when an order holds its units.
func (a askedFor) surely(r row) time.Time {
	if heard, known := a.heard[r.no]; known {
		return heard
	}
	return r.entered.Add(clockGap)
}
