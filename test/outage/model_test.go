package outage

import (
	"errors"
	"testing"
	"time"

	"seckill"
	"seckill/internal/problem"
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
			a.Err = &engine.Refusal{Document: problem.Document{Code: code}}
		}
		return a
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
		"a key with two orders, the first forgotten with its ledger": {
			acts: []market.Act{buy(0, 1, "k", "A", ""), buy(2000, 2001, "k", "B", "")},
			rows: []row{order("A", "k", seckill.OrderCancelled, 1000), order("B", "", seckill.OrderPaid, 0)}, forgets: true, honest: true,
		},
		"a dead order that is remembered, though it need not be": {
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
		"an order that nobody asked for beside another": {
			acts: []market.Act{buy(0, 1, "k", "A", "")},
			rows: []row{order("A", "k", seckill.OrderPaid, 0), order("B", "", seckill.OrderPaid, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sale := map[uint32]engine.Product{1: {ID: 1, LimitGroup: 1, PerUserLimit: 1}}
			_, findings := checkHistory(sale, func(uint32) bool { return c.forgets }, c.acts, c.rows)
			if honest := len(findings) == 0; honest != c.honest {
				t.Errorf("honest %v, want %v: %v", honest, c.honest, findings)
			}
		})
	}
}

func TestAnUndersellIsFoundWhereItIsCertain(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	turnedAway := market.Act{
		Buyer: "eve", Product: 1, Purchase: engine.Purchase{Quantity: 1}, Called: at(100), Done: at(100),
		Err: &engine.Refusal{Document: problem.Document{Code: seckill.CodeSoldOut}},
	}
	order := row{no: "A", buyer: "bob", product: 1, quantity: 2, status: seckill.OrderPaid, created: at(1)}
	early, late := order, order
	early.status, early.closed = seckill.OrderCancelled, at(10)
	late.status, late.closed = seckill.OrderCancelled, at(90)
	for name, c := range map[string]struct {
		stock, most int64 // most is what operators took away
		rows        []row
		wrong       int
	}{
		"all were sold":                      {2, 0, []row{order}, 0},
		"a unit was free":                    {3, 0, []row{order}, 1},
		"an operator may have taken it away": {3, 1, []row{order}, 0},
		"units had come back long before":    {2, 0, []row{early}, 1},
		"units were perhaps not back yet":    {2, 0, []row{late}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := checkNoUndersell(map[uint32]int64{1: c.stock - c.most}, []market.Act{turnedAway}, c.rows)
			if len(findings) != c.wrong {
				t.Errorf("found %v", findings)
			}
		})
	}
}
