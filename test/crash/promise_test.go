package crash

import (
	"context"
	"sync"

	"seckill"
	"seckill/internal/wire"
	"seckill/test/engine"
)

// readers is how many requests of a check are under way at once.
const readers = 8

// check shows the promises of an engine at rest from the outside, stops it
// gracefully and shows them again in its files.
func (b *book) check() {
	b.t.Helper()
	b.checkOrders()
	b.checkKeys()
	b.checkMoney()
	b.checkFigures()
	if b.t.Failed() {
		return
	}
	b.engine.MustStop()
	b.checkTables()
}

// each calls check for every claim that was promised an order.
func (b *book) each(check func(ctx context.Context, c *claim)) {
	ctx, cancel := context.WithTimeout(b.t.Context(), settleWithin)
	defer cancel()
	work := make(chan *claim)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for c := range work {
				check(ctx, c)
			}
		})
	}
	for _, c := range b.claims {
		if c.no != "" {
			work <- c
		}
	}
	close(work)
	group.Wait()
}

// checkOrders: every 202 ever answered is an order row, or a failure that its
// buyer can read (I4); no buyer has more live units than the limit (I3).
func (b *book) checkOrders() {
	b.t.Helper()
	type owner struct {
		buyer string
		group uint32
	}
	var mu sync.Mutex
	live, counted := make(map[owner]int), make(map[string]bool)
	b.each(func(ctx context.Context, c *claim) {
		order, err := b.read(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			b.t.Errorf("I4: order %s of %s cannot be read: %v", c.no, c.buyer.Name, err)
			return
		case order.Status == "queued":
			b.t.Errorf("I4: order %s is queued at rest (%s)", c.no, order.Reason)
		case order.Status == "failed" && (order.Reason == "" || !b.rebuilt[c.product]):
			b.t.Errorf("I4: order %s failed (%q) though its product kept its epoch", c.no, order.Reason)
		case order.Quantity != c.purchase.Quantity || order.ProductID != c.product:
			b.t.Errorf("I4: order %s is of %d units of product %d, claimed were %d of %d",
				c.no, order.Quantity, order.ProductID, c.purchase.Quantity, c.product)
		}
		if (order.Status == "pending" || order.Status == "paid") && !counted[c.no] {
			counted[c.no] = true
			p := b.products[c.product]
			who := owner{c.buyer.Name, p.LimitGroup}
			if live[who] += order.Quantity; live[who] > p.PerUserLimit {
				b.t.Errorf("I3: %s has %d live units in group %d, the limit is %d", who.buyer, live[who], who.group, p.PerUserLimit)
			}
		}
	})
}

// checkKeys repeats every claim that has a key: it must find its order.
func (b *book) checkKeys() {
	b.t.Helper()
	b.each(func(ctx context.Context, c *claim) {
		if c.purchase.Key == "" || b.rebuilt[c.product] {
			return
		}
		if err := b.send(ctx, c); err != nil {
			b.t.Errorf("I4: key %s of %s, promised %s, repeated: %v", c.purchase.Key, c.buyer.Name, c.no, err)
		}
	})
}

// checkMoney: every callback, however often delivered, is recorded once; one
// exact payment pays an order, and all other money is refunded once (I8).
func (b *book) checkMoney() {
	b.t.Helper()
	trades := make(map[string]map[string]int64) // cents by order and trade
	for _, n := range b.notices {
		if trades[n.OrderNo] == nil {
			trades[n.OrderNo] = make(map[string]int64)
		}
		trades[n.OrderNo][n.TradeNo] = n.AmountCents
	}
	for no, told := range trades {
		var rows []wire.Payment
		eventually(b.t, "refunds are made", func(ctx context.Context) bool {
			var err error
			rows, err = b.operator.Payments(ctx, no)
			for _, row := range rows {
				if row.Type == "refund" && row.Status != "done" {
					return false
				}
			}
			return err == nil
		})
		b.checkOrderMoney(no, told, rows)
	}
}

func (b *book) checkOrderMoney(no string, told map[string]int64, rows []wire.Payment) {
	story, err := b.operator.Order(b.t.Context(), no)
	if err != nil {
		b.t.Errorf("I8: order %s with money: %v", no, err)
		return
	}
	payments, refunds := make(map[string]wire.Payment), make(map[string]int)
	for _, row := range rows {
		if row.Type == "refund" {
			refunds[row.PaymentID]++
			continue
		}
		if _, twice := payments[row.TradeNo]; twice || row.AmountCents != told[row.TradeNo] {
			b.t.Errorf("I8: money %+v of order %s was told as %d cents, once", row, no, told[row.TradeNo])
		}
		payments[row.TradeNo] = row
	}
	applied := 0
	for trade := range told {
		money, recorded := payments[trade]
		if !recorded {
			b.t.Errorf("I8: trade %s of order %s was told and is not recorded", trade, no)
			continue
		}
		back := 1
		if money.Status == "applied" {
			applied++
			if money.AmountCents != story.AmountCents {
				b.t.Errorf("I8: order %s of %d cents is paid by %d", no, story.AmountCents, money.AmountCents)
			}
			if story.Status != "refunded" {
				back = 0
			}
		}
		if refunds[money.ID] != back {
			b.t.Errorf("I8: trade %s of order %s (%s, %s) is refunded %d times, not %d", trade, no, story.Status, money.Status, refunds[money.ID], back)
		}
	}
	want := 0
	if story.Status == "paid" || story.Status == "refunded" {
		want = 1
	}
	if applied != want {
		b.t.Errorf("I8: order %s is %s by %d payments", no, story.Status, applied)
	}
}

// checkFigures: I1, I2 and I5 from the stats, and all of I1 to I8 once more by
// the engine's own reconciliation.
func (b *book) checkFigures() {
	b.t.Helper()
	for id := range b.products {
		f, err := b.operator.Stats(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if sum := f.Store.Stock + f.Store.Pending + f.Store.Paid; sum != f.Offered {
			b.t.Errorf("I1: product %d offers %d, stock + pending + paid = %d", id, f.Offered, sum)
		}
		if f.Store.Pending+f.Store.Paid > f.Offered {
			b.t.Errorf("I2: product %d offers %d, live orders have %d", id, f.Offered, f.Store.Pending+f.Store.Paid)
		}
		eventually(b.t, "ledger available + reserved = offered (I5)", func(ctx context.Context) bool {
			f, err = b.operator.Stats(ctx, id)
			return err == nil && f.Ledger.Available+f.Ledger.Reserved == f.Offered
		})
		b.checkReport(id)
	}
}

func (b *book) checkReport(id uint32) {
	b.t.Helper()
	report, err := b.operator.Reconcile(b.t.Context(), id, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		b.t.Errorf("reconcile product %d: %v, %+v", id, err, report)
	}
}

// codeIn reports whether a refusal has one of the codes that are no
// surprise where it came.
func codeIn(err error, codes ...seckill.Code) bool {
	got := engine.CodeOf(err)
	for _, code := range codes {
		if got == code {
			return true
		}
	}
	return false
}
