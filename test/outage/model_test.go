package outage

import (
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
	"seckill/test/market"
)

// The checks of a campaign are themselves checked: each finds the history that
// it is there for, and lets the honest ones pass.
func TestTheModelKnowsHonestHistoriesFromOthers(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	buy := func(from, to int, key, no string, code seckill.Code) market.Act {
		a := market.Act{Buyer: "bob", Product: 1, Purchase: engine.Purchase{Quantity: 1, Key: key}, Called: at(from), Done: at(to), No: no}
		if no == "" {
			a.Err = &engine.Refusal{Document: api.Document{Code: code}}
		}
		return a
	}
	here, there := new(engine.Engine), new(engine.Engine)
	by := func(e *engine.Engine, a market.Act) market.Act {
		a.At = e
		return a
	}
	elsewhere := func(a market.Act) market.Act { return by(there, a) }
	// Of product 2 a buyer may have two units.
	ofTwo := func(quantity int, a market.Act) market.Act {
		a.Product, a.Purchase.Quantity = 2, quantity
		return a
	}
	rowOfTwo := func(quantity int, r row) row {
		r.product, r.quantity = 2, quantity
		return r
	}
	order := func(no, key string, status seckill.OrderStatus, closed int) row {
		return row{no: no, buyer: "bob", key: key, product: 1, quantity: 1, status: status, created: start, closed: at(closed)}
	}
	late := func(no, key string, status seckill.OrderStatus, created, closed int) row {
		r := order(no, key, status, closed)
		r.created, r.entered = at(created), at(created)
		return r
	}
	taken := func(no, key string, status seckill.OrderStatus, entered int) row {
		r := order(no, key, status, 9000)
		r.entered = at(entered)
		return r
	}
	lost := buy(0, 10, "k", "", "")
	lost.Err = errors.New("connection reset")
	for name, c := range map[string]struct {
		acts    []market.Act
		rows    []row
		forgets bool
		split   [2]int // milliseconds between which there are two ledgers
		honest  bool
	}{
		"one order": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2, 3, "k", "A", ""), buy(4, 5, "m", "", seckill.CodeAlreadyPurchased)},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)}, honest: true,
		},
		"a key with two orders": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2000, 2001, "k", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 1000), order("B", "", seckill.OrderPaid, 0)},
		},
		"a key with two orders, the first dead when its ledger was lost": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2000, 2001, "k", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 1000), order("B", "", seckill.OrderPaid, 0)}, forgets: true,
		},
		"a dead order that is remembered": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2000, 2001, "m", "B", ""), buy(3000, 3001, "k", "A", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 1000), order("B", "m", seckill.OrderPaid, 0)}, forgets: true, honest: true,
		},
		"a key whose live order was forgotten, and the second failed": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(10, 11, "k", "B", ""), buy(20, 21, "k", "B", ""), buy(30, 31, "k", "A", "")},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "", seckill.OrderFailed, 0)}, forgets: true, honest: true,
		},
		"two live orders": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2, 3, "m", "B", "")},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "m", seckill.OrderPending, 0)}, forgets: true,
		},
		"two orders, the first dead by then": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2000, 2001, "m", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 1000), order("B", "m", seckill.OrderPaid, 0)}, honest: true,
		},
		"two orders, the first dead only later": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2, 3, "m", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 9000), order("B", "m", seckill.OrderPaid, 0)},
		},
		"two orders, of which one failed": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2, 3, "m", "B", "")},
			rows: []row{order("A", "k", seckill.OrderFailed, 1000), order("B", "m", seckill.OrderPaid, 0)}, honest: true,
		},
		"told to have bought what failed later": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2, 3, "m", "", seckill.CodeAlreadyPurchased)},
			rows: []row{order("A", "k", seckill.OrderFailed, 1000)}, forgets: true, honest: true,
		},
		"a promise that was lost, and adopted when the next one was dead": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(1000, 1001, "m", "B", "")},
			rows: []row{late("A", "k", seckill.OrderCancelled, 4000, 9000), order("B", "m", seckill.OrderCancelled, 2000)}, forgets: true, honest: true,
		},
		"a promise of a ledger that had lost another, taken when that was dead": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(1000, 1001, "m", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 2000), taken("B", "m", seckill.OrderPaid, 3000)}, forgets: true, honest: true,
		},
		"a promise of a ledger that had lost another, taken while that was alive": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(1000, 1001, "m", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 4000), taken("B", "m", seckill.OrderCancelled, 3000)}, forgets: true,
		},
		"a promise that was lost, and adopted beside the next one": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(1000, 1001, "m", "B", "")},
			rows: []row{late("A", "k", seckill.OrderPaid, 4000, 0), order("B", "m", seckill.OrderPaid, 0)}, forgets: true,
		},
		"a promise that was lost, and adopted before the next one": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(9000, 9001, "m", "B", "")},
			rows: []row{late("A", "k", seckill.OrderPaid, 4000, 0), order("B", "m", seckill.OrderPaid, 0)}, forgets: true,
		},
		"a promise that counts although it will be lost": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2, 3, "m", "", seckill.CodeAlreadyPurchased), buy(5, 6, "k", "A", "")},
			rows: []row{late("A", "k", seckill.OrderPaid, 4000, 0)}, forgets: true, honest: true,
		},
		"told to have bought before anything was": {
			acts: []market.Act{buy(0, 1, "k", "", seckill.CodeAlreadyPurchased), buy(2, 3, "m", "A", "")},
			rows: []row{order("A", "m", seckill.OrderPaid, 0)},
		},
		"told to have bought what a lost answer did": {
			acts: []market.Act{lost, buy(20, 21, "m", "", seckill.CodeAlreadyPurchased), buy(30, 31, "k", "A", "")},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)}, honest: true,
		},
		"sold out to a key that has an order": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(9000, 9001, "k", "", seckill.CodeSoldOut)},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)},
		},
		"sold out to a key whose order is dead, after a loss": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(9000, 9001, "k", "", seckill.CodeSoldOut)},
			rows: []row{order("A", "k", seckill.OrderCancelled, 1000)}, forgets: true,
		},
		"sold out to a key whose order failed after a loss": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(9000, 9001, "k", "", seckill.CodeSoldOut)},
			rows: []row{order("A", "k", seckill.OrderFailed, 5000)}, forgets: true, honest: true,
		},
		"sold out to a key that has an order, two seconds after": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), elsewhere(buy(2001, 2002, "k", "", seckill.CodeSoldOut))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)},
		},
		"sold out to a key that another instance has not heard of yet": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), elsewhere(buy(5, 6, "k", "", seckill.CodeSoldOut))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)}, honest: true,
		},
		"sold out to a key at the instance that sold it": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(5, 6, "k", "", seckill.CodeSoldOut)},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)},
		},
		"a promise that reached the store late, beside the next one": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(1000, 1001, "m", "B", "")},
			rows: []row{late("A", "k", seckill.OrderCancelled, 4000, 9000), order("B", "m", seckill.OrderCancelled, 2000)},
		},
		"told by one of two ledgers to have bought, though the other sold under that key": {
			acts: []market.Act{by(here, buy(0, 1, "k", "A", "")), by(there, buy(10, 11, "m", "B", "")), by(there, buy(2000, 2001, "k", "", seckill.CodeAlreadyPurchased))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "m", seckill.OrderFailed, 3000)}, forgets: true, split: [2]int{0, 3000}, honest: true,
		},
		"the same, by the ledger that sold": {
			acts: []market.Act{by(here, buy(0, 1, "k", "A", "")), by(there, buy(10, 11, "m", "B", "")), by(here, buy(2000, 2001, "k", "", seckill.CodeAlreadyPurchased))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "m", seckill.OrderFailed, 3000)}, forgets: true, split: [2]int{0, 3000},
		},
		"the same, where there is one ledger": {
			acts: []market.Act{by(here, buy(0, 1, "k", "A", "")), by(there, buy(10, 11, "m", "B", "")), by(there, buy(2000, 2001, "k", "", seckill.CodeAlreadyPurchased))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "m", seckill.OrderFailed, 3000)}, forgets: true,
		},
		"the same, sold when there was one again": {
			acts: []market.Act{by(here, buy(4000, 4001, "k", "A", "")), by(there, buy(4010, 4011, "m", "B", "")), by(there, buy(6000, 6001, "k", "", seckill.CodeAlreadyPurchased))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "m", seckill.OrderFailed, 3000)}, forgets: true, split: [2]int{0, 3000},
		},
		"the same, sold before there were two": {
			acts: []market.Act{by(here, buy(0, 1, "k", "A", "")), by(there, buy(2000, 2001, "m", "B", "")), by(there, buy(2500, 2501, "k", "", seckill.CodeAlreadyPurchased))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "m", seckill.OrderFailed, 3000)}, forgets: true, split: [2]int{1000, 3000},
		},
		"sold out at one of two ledgers, though the other sold under that key": {
			acts: []market.Act{by(here, buy(0, 1, "k", "A", "")), by(there, buy(2001, 2002, "k", "", seckill.CodeSoldOut))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)}, forgets: true, split: [2]int{0, 3000}, honest: true,
		},
		"sold out at the one of two ledgers that sold under that key": {
			acts: []market.Act{by(here, buy(0, 1, "k", "A", "")), by(here, buy(2001, 2002, "k", "", seckill.CodeSoldOut))},
			rows: []row{order("A", "k", seckill.OrderPaid, 0)}, forgets: true, split: [2]int{0, 3000},
		},
		"a key that two ledgers sold under, with two orders": {
			acts: []market.Act{by(here, ofTwo(1, buy(0, 1, "k", "A", ""))), by(there, ofTwo(1, buy(10, 11, "k", "B", "")))},
			rows: []row{rowOfTwo(1, order("A", "k", seckill.OrderPaid, 0)), rowOfTwo(1, order("B", "k", seckill.OrderPaid, 0))}, forgets: true, split: [2]int{0, 3000},
		},
		"orders of two ledgers, over the limit": {
			acts: []market.Act{by(here, ofTwo(2, buy(0, 1, "k", "A", ""))), by(there, ofTwo(1, buy(10, 11, "m", "B", "")))},
			rows: []row{rowOfTwo(2, order("A", "k", seckill.OrderPaid, 0)), rowOfTwo(1, order("B", "m", seckill.OrderPaid, 0))}, forgets: true, split: [2]int{0, 3000},
		},
		"told to have bought, by the one of two ledgers that has not heard of an end": {
			acts: []market.Act{by(here, ofTwo(2, buy(0, 1, "k", "A", ""))), by(there, ofTwo(1, buy(2000, 2001, "m", "B", ""))), by(here, ofTwo(1, buy(2500, 2501, "n", "", seckill.CodeAlreadyPurchased)))},
			rows: []row{rowOfTwo(2, order("A", "k", seckill.OrderCancelled, 1000)), rowOfTwo(1, order("B", "m", seckill.OrderPaid, 0))}, forgets: true, split: [2]int{0, 3000}, honest: true,
		},
		"told to have bought, though all have heard of the end": {
			acts: []market.Act{by(here, ofTwo(2, buy(0, 1, "k", "A", ""))), by(there, ofTwo(1, buy(2000, 2001, "m", "B", ""))), by(here, ofTwo(1, buy(2500, 2501, "n", "", seckill.CodeAlreadyPurchased)))},
			rows: []row{rowOfTwo(2, order("A", "k", seckill.OrderCancelled, 1000)), rowOfTwo(1, order("B", "m", seckill.OrderPaid, 0))}, forgets: true, split: [2]int{1500, 3000},
		},
		"told to have bought by an old ledger, that has an order which ended, and not the key": {
			acts: []market.Act{ofTwo(2, buy(0, 1, "k", "A", "")), ofTwo(1, buy(2000, 2001, "m", "B", "")), ofTwo(1, buy(2500, 2501, "m", "", seckill.CodeAlreadyPurchased))},
			rows: []row{rowOfTwo(2, order("A", "k", seckill.OrderCancelled, 1000)), rowOfTwo(1, order("B", "m", seckill.OrderPaid, 0))}, forgets: true, honest: true,
		},
		"the same, by a ledger that is not in doubt": {
			acts: []market.Act{ofTwo(2, buy(0, 1, "k", "A", "")), ofTwo(1, buy(2000, 2001, "m", "B", "")), ofTwo(1, buy(2500, 2501, "m", "", seckill.CodeAlreadyPurchased))},
			rows: []row{rowOfTwo(2, order("A", "k", seckill.OrderCancelled, 1000)), rowOfTwo(1, order("B", "m", seckill.OrderPaid, 0))},
		},
		"told to have bought by an old ledger, that has too few units for that": {
			acts: []market.Act{ofTwo(1, buy(0, 1, "k", "A", "")), ofTwo(1, buy(2000, 2001, "m", "B", "")), ofTwo(1, buy(2500, 2501, "m", "", seckill.CodeAlreadyPurchased))},
			rows: []row{rowOfTwo(1, order("A", "k", seckill.OrderCancelled, 1000)), rowOfTwo(1, order("B", "m", seckill.OrderPaid, 0))}, forgets: true,
		},
		"an order that nobody asked for beside another": {
			acts: []market.Act{buy(0, 1, "k", "A", "")},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "", seckill.OrderPaid, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evidence{products: map[uint32]engine.Product{1: {ID: 1, LimitGroup: 1, PerUserLimit: 1}, 2: {ID: 2, LimitGroup: 2, PerUserLimit: 2}}, acts: c.acts, rows: c.rows}
			if c.split[1] > 0 {
				e.split = span{at(c.split[0]), at(c.split[1])}
			}
			e.doubted = func(uint32, time.Time, time.Time) bool { return c.forgets }
			_, findings := e.checkHistory()
			if honest := len(findings) == 0; honest != c.honest {
				t.Errorf("honest %v, want %v: %v", honest, c.honest, findings)
			}
		})
	}
}

// A refusal is judged only where the bounds of what was free say so.
func TestAnUndersellIsFoundWhereItIsCertain(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	turnedAway := market.Act{
		Buyer: "eve", Product: 1, Purchase: engine.Purchase{Quantity: 1}, Called: at(100), Done: at(100),
		Err: &engine.Refusal{Document: api.Document{Code: seckill.CodeSoldOut}},
	}
	bought := func(from, to int) market.Act {
		return market.Act{Buyer: "bob", Product: 1, Purchase: engine.Purchase{Quantity: 2, Key: "k"}, Called: at(from), Done: at(to), No: "A"}
	}
	lost := market.Act{Buyer: "joe", Product: 1, Purchase: engine.Purchase{Quantity: 1, Key: "k"}, Called: at(90), Done: at(91), Err: errors.New("connection reset")}
	order := row{no: "A", buyer: "bob", key: "k", product: 1, quantity: 2, status: seckill.OrderPaid, created: at(1), entered: at(1)}
	cancelled := order
	cancelled.status, cancelled.closed = seckill.OrderCancelled, at(90)
	const wrong, right, open = "wrong", "right", "undecided"
	for name, c := range map[string]struct {
		stock   int64
		acts    []market.Act
		rows    []row
		changes []market.StockChange
		settled map[string]settled
		back    map[string]time.Time
		held    []while
		lost    [2]int // seconds between which the ledger is in doubt
		want    string
	}{
		"all were sold":   {stock: 2, acts: []market.Act{bought(1, 2)}, rows: []row{order}, want: right},
		"a unit was free": {stock: 3, acts: []market.Act{bought(1, 2)}, rows: []row{order}, want: wrong},
		"the last ones were sold within the second":         {stock: 2, acts: []market.Act{bought(98, 99)}, rows: []row{order}, want: right},
		"the last ones were sold after it":                  {stock: 2, acts: []market.Act{bought(101, 102)}, rows: []row{order}, want: wrong},
		"the last ones were perhaps sold within it":         {stock: 2, acts: []market.Act{bought(98, 102)}, rows: []row{order}, want: open},
		"units were seen to be back":                        {stock: 2, acts: []market.Act{bought(1, 2)}, rows: []row{cancelled}, back: map[string]time.Time{"A": at(98)}, want: wrong},
		"units came back within the second":                 {stock: 2, acts: []market.Act{bought(1, 2)}, rows: []row{cancelled}, back: map[string]time.Time{"A": at(100)}, want: open},
		"units were on their way back":                      {stock: 2, acts: []market.Act{bought(1, 2)}, rows: []row{cancelled}, want: open},
		"units were back, and marked once more":             {stock: 2, acts: []market.Act{bought(1, 2)}, rows: []row{cancelled}, back: map[string]time.Time{"A": at(91)}, held: []while{{"A", at(92), at(101)}}, want: open},
		"units were back, in a ledger in doubt":             {stock: 2, acts: []market.Act{bought(1, 2)}, rows: []row{cancelled}, back: map[string]time.Time{"A": at(91)}, lost: [2]int{95, 105}, want: open},
		"more were free than any doubt is about":            {stock: 3, acts: []market.Act{bought(1, 2)}, rows: []row{cancelled}, lost: [2]int{95, 105}, want: wrong},
		"a unit is asked for by who has no answer":          {stock: 1, acts: []market.Act{lost}, lost: [2]int{101, 105}, want: open},
		"who has no answer has no order either":             {stock: 1, acts: []market.Act{lost}, want: wrong},
		"units were added":                                  {stock: 0, changes: []market.StockChange{{ID: "c", Product: 1, Delta: 2, Begun: at(50)}}, settled: map[string]settled{"c": {at(51), true}}, want: wrong},
		"units were perhaps added by then":                  {stock: 0, changes: []market.StockChange{{ID: "c", Product: 1, Delta: 2, Begun: at(50)}}, settled: map[string]settled{"c": {at(100), true}}, want: open},
		"units were added after it":                         {stock: 0, changes: []market.StockChange{{ID: "c", Product: 1, Delta: 2, Begun: at(101)}}, settled: map[string]settled{"c": {at(102), true}}, want: right},
		"units were taken away":                             {stock: 2, changes: []market.StockChange{{ID: "c", Product: 1, Delta: -2, Begun: at(50)}}, settled: map[string]settled{"c": {at(51), true}}, want: right},
		"units were perhaps taken away by then":             {stock: 2, changes: []market.StockChange{{ID: "c", Product: 1, Delta: -2, Begun: at(50)}}, settled: map[string]settled{"c": {at(101), true}}, want: open},
		"units were to be taken away, and were not":         {stock: 2, changes: []market.StockChange{{ID: "c", Product: 1, Delta: -2, Begun: at(50)}}, settled: map[string]settled{"c": {at(101), false}}, want: wrong},
		"units were given up by a ledger that was in doubt": {stock: 2, changes: []market.StockChange{{ID: "c", Product: 1, Delta: -2, Begun: at(50)}}, settled: map[string]settled{"c": {at(101), false}}, lost: [2]int{60, 70}, want: open},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evidence{
				products: map[uint32]engine.Product{1: {ID: 1, Stock: c.stock}}, acts: append(c.acts, turnedAway), rows: c.rows,
				changes: c.changes, settled: c.settled, back: c.back, held: c.held,
			}
			e.doubtedUntil = func(_ uint32, from, to time.Time) (time.Time, bool) {
				return at(c.lost[1]), c.lost[1] > 0 && !at(c.lost[0]).After(to) && !at(c.lost[1]).Before(from)
			}
			e.doubted = func(product uint32, from, to time.Time) bool { _, met := e.doubtedUntil(product, from, to); return met }
			found := e.checkNoUndersell()
			got := open
			switch {
			case found.wrong > 0:
				got = wrong
			case found.right > 0:
				got = right
			}
			if got != c.want || found.all != 1 || len(found.findings) != found.wrong {
				t.Errorf("the refusal is %s, want %s: %+v", got, c.want, found)
			}
		})
	}
}
