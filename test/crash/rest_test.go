package crash

import (
	"context"
	"sync"
	"time"

	"seckill"
	"seckill/test/engine"
)

// settle brings the engine to rest: everything that has no certain answer yet
// is asked again, politely, until it has one.
func (b *book) settle() {
	b.t.Helper()
	for id := range b.products {
		if err := untilAnswered(b.t, "resume", func(ctx context.Context) error {
			_, err := b.operator.Resume(ctx, id)
			return err
		}); err != nil && engine.CodeOf(err) != seckill.CodeWrongState {
			b.t.Fatalf("resume product %d: %v", id, err)
		}
	}
	for _, n := range b.notices {
		if !n.heard {
			untilAnswered(b.t, "deliver a callback", func(ctx context.Context) error { return b.tell(ctx, n) })
		}
	}
	for no := range b.refunded {
		untilAnswered(b.t, "refund", func(ctx context.Context) error { return b.refund(ctx, no) })
	}
	for _, c := range b.claims {
		if c.no == "" && c.purchase.Key != "" {
			untilAnswered(b.t, "repeat a claim", func(ctx context.Context) error { return b.send(ctx, c) })
		}
	}
	b.settleStock()
}

// settleStock sends every change of stock again: the answer is what became of
// it. offered must be the initial stock and all changes that stand.
func (b *book) settleStock() {
	b.t.Helper()
	offered := make(map[uint32]int64)
	for _, c := range b.changes {
		if c.dropped {
			continue
		}
		eventually(b.t, "a stock change is decided", func(ctx context.Context) bool {
			change, err := b.operator.ChangeStock(ctx, c.product, c.delta, c.id)
			switch {
			case err == nil && change.Status == "done":
				offered[c.product] += c.delta
				return true
			case engine.CodeOf(err) == seckill.CodeWrongState, engine.CodeOf(err) == seckill.CodeBadRequest:
				return true // refused
			}
			return false
		})
	}
	for id, p := range b.products {
		figures, err := b.operator.Stats(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if want := p.Stock + offered[id]; figures.Offered != want {
			b.t.Errorf("I1: product %d offers %d, its stock and all changes make %d", id, figures.Offered, want)
		}
	}
}

// sellOut has everybody pay what is pending, and new buyers come, buy one unit
// and pay it, until the whole stock of every product is paid for: nothing is
// left that cannot be sold.
func (b *book) sellOut() {
	b.t.Helper()
	b.each(b.payWhenPending)
	var sales sync.WaitGroup
	for id := range b.products {
		sales.Go(func() {
			for !b.soldOut(id) && !b.t.Failed() {
				b.sellSome(id)
			}
		})
	}
	sales.Wait()
}

// sellSome lets a few buyers try once each, and those who got an order pay.
func (b *book) sellSome(product uint32) {
	ctx, cancel := context.WithTimeout(b.t.Context(), settleWithin)
	defer cancel()
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			c := b.claim(b.buyer(), product, engine.Purchase{Quantity: 1, Key: "last"})
			for err := b.send(ctx, c); err != nil; err = b.send(ctx, c) {
				if engine.CodeOf(err) == seckill.CodeSoldOut {
					return
				}
				if !pause(ctx, 50*time.Millisecond) {
					b.t.Errorf("I7: nobody can buy product %d: %v", product, err)
					return
				}
			}
			b.payWhenPending(ctx, c)
		})
	}
	crowd.Wait()
}

// payWhenPending waits until a promised order has left the queue, and pays it
// if it can be paid.
func (b *book) payWhenPending(ctx context.Context, c *claim) {
	order, err := b.read(ctx, c)
	for err != nil || order.Status == "queued" {
		if !pause(ctx, 10*time.Millisecond) {
			b.t.Errorf("I4: order %s of %s is still queued (%v)", c.no, c.buyer.Name, err)
			return
		}
		order, err = b.read(ctx, c)
	}
	if order.Status != "pending" {
		return
	}
	n := b.money(order.OrderNo, order.AmountCents)
	for b.tell(ctx, n) != nil && pause(ctx, 20*time.Millisecond) {
	}
}

// soldOut waits until nothing of the product moves, as long as nothing can be
// bought, and reports whether all of it is paid.
func (b *book) soldOut(product uint32) bool {
	ctx, cancel := context.WithTimeout(b.t.Context(), settleWithin)
	defer cancel()
	for {
		f, err := b.operator.Stats(ctx, product)
		switch {
		case err == nil && f.Ledger.Available > 0:
			return false
		case err == nil && f.Store.Stock == 0 && f.Store.Pending == 0 && f.Queue.Depth == 0:
			return true
		}
		if !pause(ctx, 50*time.Millisecond) {
			b.t.Errorf("I7: product %d is neither free nor sold: %+v (%v)", product, f, err)
			return true
		}
	}
}
