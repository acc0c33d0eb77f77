package market

import (
	"context"
	"slices"
	"sync"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// readers is the number of concurrent requests of a check.
const readers = 8

// perClaim is the time that a pass over all claims may take for each claim, on
// a busy machine.
const perClaim = 10 * time.Millisecond

// Check checks the promises of an engine at rest over HTTP, stops the engine
// and checks them again in its tables.
func (b *Book) Check() {
	b.T.Helper()
	b.Mended() // the following checks confirm it
	b.checkOrders()
	b.CheckKeys()
	b.checkMoney()
	b.checkFigures()
	if b.T.Failed() {
		return
	}
	b.hearReleases()
	for _, e := range b.engines {
		e.MustStop()
	}
	b.checkTables()
}

// Each calls check for every claim that was promised an order.
func (b *Book) Each(check func(ctx context.Context, c *Claim)) {
	claims := b.promised()
	ctx, cancel := context.WithTimeout(b.T.Context(), SettleWithin+time.Duration(len(claims))*perClaim)
	defer cancel()
	work := make(chan *Claim)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for c := range work {
				check(ctx, c)
			}
		})
	}
	for _, c := range claims {
		work <- c
	}
	close(work)
	group.Wait()
}

// promised are the claims that were promised an order so far.
func (b *Book) promised() []*Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	var claims []*Claim
	for _, c := range b.Claims {
		if c.No != "" {
			claims = append(claims, c)
		}
	}
	return claims
}

// checkOrders checks that every 202 became an order row, or a failure that its
// buyer can read (I4), and that no buyer has more live units than the limit
// (I3).
func (b *Book) checkOrders() {
	b.T.Helper()
	type owner struct {
		buyer string
		group uint32
	}
	var mu sync.Mutex
	live, counted := make(map[owner]int), make(map[string]bool)
	b.Each(func(ctx context.Context, c *Claim) {
		order, err := b.Read(ctx, c)
		for err != nil && (!engine.Answered(err) || Temporary(err)) && Pause(ctx, 20*time.Millisecond) {
			order, err = b.Read(ctx, c) // a late answer on a busy machine is busy
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			b.T.Errorf("I4: order %s of %s cannot be read: %v", c.No, c.Buyer.Name, err)
			return
		case order.Status == "queued":
			b.T.Errorf("I4: order %s is queued at rest (%s)", c.No, order.Reason)
		case order.Quantity != c.Purchase.Quantity || order.ProductID != c.Product:
			b.T.Errorf("I4: order %s is of %d units of product %d, claimed were %d of %d",
				c.No, order.Quantity, order.ProductID, c.Purchase.Quantity, c.Product)
		}
		if (order.Status == "pending" || order.Status == "paid") && !counted[c.No] {
			counted[c.No] = true
			p := b.Products[c.Product]
			who := owner{c.Buyer.Name, p.LimitGroup}
			if live[who] += order.Quantity; live[who] > p.PerUserLimit {
				b.T.Errorf("I3: %s has %d live units in group %d, the limit is %d", who.buyer, live[who], who.group, p.PerUserLimit)
			}
		}
	})
}

// CheckKeys repeats every claim that has a key. Each must find its order, also
// a dead one. A busy answer decides nothing.
func (b *Book) CheckKeys() {
	b.T.Helper()
	b.Each(func(ctx context.Context, c *Claim) {
		if c.Purchase.Key == "" || !b.mustFind(c) {
			return
		}
		err := b.Send(ctx, c)
		for (!engine.Answered(err) || Temporary(err)) && Pause(ctx, 20*time.Millisecond) {
			err = b.Send(ctx, c)
		}
		if err != nil {
			b.T.Errorf("I4: key %s of %s, promised %s, repeated: %v", c.Purchase.Key, c.Buyer.Name, c.No, err)
		}
	})
}

// mustFind reports whether the claim's key, repeated now, finds its order.
func (b *Book) mustFind(c *Claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.knows(c, c.kept, time.Now())
}

// checkMoney checks that every payment is recorded once, that one exact payment
// pays an order, and that all other money is refunded once (I8).
func (b *Book) checkMoney() {
	b.T.Helper()
	trades := make(map[string]map[string]int64) // cents by order and trade
	for _, n := range b.notices {
		if trades[n.OrderNo] == nil {
			trades[n.OrderNo] = make(map[string]int64)
		}
		trades[n.OrderNo][n.TradeNo] = n.AmountCents
	}
	work := make(chan string)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for no := range work {
				b.checkOrderMoney(no, trades[no], b.settledMoney(no))
			}
		})
	}
	for no := range trades {
		work <- no
	}
	close(work)
	group.Wait()
}

// settledMoney waits until all refunds of an order are made, and returns its
// payments.
func (b *Book) settledMoney(no string) []api.Payment {
	ctx, cancel := context.WithTimeout(b.T.Context(), SettleWithin)
	defer cancel()
	for {
		rows, err := b.Operator().Payments(ctx, no)
		open := slices.ContainsFunc(rows, func(row api.Payment) bool { return row.Type == "refund" && row.Status != "done" })
		if err == nil && !open {
			return rows
		}
		if !Pause(ctx, 20*time.Millisecond) {
			b.T.Errorf("I8: the money of order %s does not come to rest: %v, %+v", no, err, rows)
			return rows
		}
	}
}

func (b *Book) checkOrderMoney(no string, told map[string]int64, rows []api.Payment) {
	story, err := b.Operator().Order(b.T.Context(), no)
	if err != nil {
		b.T.Errorf("I8: order %s with money: %v", no, err)
		return
	}
	payments, refunds := make(map[string]api.Payment), make(map[string]int)
	for _, row := range rows {
		if row.Type == "refund" {
			refunds[row.PaymentID]++
			continue
		}
		if _, twice := payments[row.TradeNo]; twice || row.AmountCents != told[row.TradeNo] {
			b.T.Errorf("I8: payment %+v of order %s should be recorded once, with %d cents", row, no, told[row.TradeNo])
		}
		payments[row.TradeNo] = row
	}
	applied := 0
	for trade := range told {
		money, recorded := payments[trade]
		if !recorded {
			b.T.Errorf("I8: trade %s of order %s was delivered but is not recorded", trade, no)
			continue
		}
		back := 1
		if money.Status == "applied" {
			applied++
			if money.AmountCents != story.AmountCents {
				b.T.Errorf("I8: order %s of %d cents is paid by %d", no, story.AmountCents, money.AmountCents)
			}
			if story.Status != "refunded" {
				back = 0
			}
		}
		if refunds[money.ID] != back {
			b.T.Errorf("I8: trade %s of order %s (%s, %s) is refunded %d times, not %d", trade, no, story.Status, money.Status, refunds[money.ID], back)
		}
	}
	want := 0
	if story.Status == "paid" || story.Status == "refunded" {
		want = 1
	}
	if applied != want {
		b.T.Errorf("I8: order %s is %s by %d payments", no, story.Status, applied)
	}
}

// checkFigures checks I1, I2 and I5 in the stats, and I1 to I8 by the engine's
// own reconciliation.
func (b *Book) checkFigures() {
	b.T.Helper()
	for id := range b.Products {
		f, err := b.Operator().Stats(b.T.Context(), id)
		if err != nil {
			b.T.Fatal(err)
		}
		if sum := f.Store.Stock + f.Store.Pending + f.Store.Paid; sum != f.Offered {
			b.T.Errorf("I1: product %d offers %d, stock + pending + paid = %d", id, f.Offered, sum)
		}
		if f.Store.Pending+f.Store.Paid > f.Offered {
			b.T.Errorf("I2: product %d offers %d, live orders have %d", id, f.Offered, f.Store.Pending+f.Store.Paid)
		}
		Eventually(b.T, "available + reserved = offered (I5)", func(ctx context.Context) bool {
			f, err = b.Operator().Stats(ctx, id)
			return err == nil && f.Available()+f.Reserved() == f.Offered
		})
		b.CheckReport(id)
	}
}

func (b *Book) CheckReport(id uint32) {
	b.T.Helper()
	report, err := b.Operator().Reconcile(b.T.Context(), id, false)
	if err != nil || report.Balanced == nil || !*report.Balanced {
		b.T.Errorf("reconcile product %d: %v, %+v", id, err, report)
	}
}

// codeIn reports whether a refusal has one of the codes.
func codeIn(err error, codes ...seckill.Code) bool {
	got := engine.CodeOf(err)
	for _, code := range codes {
		if got == code {
			return true
		}
	}
	return false
}
