package market

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"seckill"
	"seckill/test/engine"
)

// Settle brings the engine to rest: it repeats every request without a certain
// answer until it has one.
func (b *Book) Settle() {
	b.T.Helper()
	for id := range b.Products {
		if err := UntilAnswered(b.T, "resume", func(ctx context.Context) error {
			_, err := b.Operator().Resume(ctx, id)
			return err
		}); err != nil && engine.CodeOf(err) != seckill.CodeWrongState {
			b.T.Fatalf("resume product %d: %v", id, err)
		}
	}
	for _, n := range b.notices {
		if !n.heard {
			UntilAnswered(b.T, "deliver a callback", func(ctx context.Context) error { return b.Tell(ctx, n) })
		}
	}
	for no := range b.refunded {
		UntilAnswered(b.T, "refund", func(ctx context.Context) error { return b.Refund(ctx, no) })
	}
	b.settleClaims()
	b.settleStock()
}

// settleClaims repeats every claim that has a key and no order.
func (b *Book) settleClaims() {
	b.T.Helper()
	work := make(chan *Claim)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for c := range work {
				ctx, cancel := context.WithTimeout(b.T.Context(), SettleWithin)
				for err := b.Send(ctx, c); !engine.Answered(err) || Temporary(err); err = b.Send(ctx, c) {
					if !Pause(ctx, 20*time.Millisecond) {
						b.T.Errorf("a claim of %s for product %d has no answer: %v", c.Buyer.Name, c.Product, err)
						break
					}
				}
				cancel()
			}
		})
	}
	b.mu.Lock()
	claims := slices.Clone(b.Claims)
	b.mu.Unlock()
	for _, c := range claims {
		if b.OrderNo(c) == "" && c.Purchase.Key != "" {
			work <- c
		}
	}
	close(work)
	group.Wait()
}

// settleStock sends every change of stock again, and the answer shows its
// result. The offered units must be the initial stock plus all changes that
// succeeded.
func (b *Book) settleStock() {
	b.T.Helper()
	offered := make(map[uint32]int64)
	for _, c := range b.changes {
		if c.dropped {
			continue
		}
		Eventually(b.T, "a stock change is decided", func(ctx context.Context) bool {
			change, err := b.Operator().ChangeStock(ctx, c.product, c.delta, c.id)
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
	for id, p := range b.Products {
		figures, err := b.Operator().Stats(b.T.Context(), id)
		if err != nil {
			b.T.Fatal(err)
		}
		if want := p.Stock + offered[id]; figures.Offered != want {
			b.T.Errorf("I1: product %d offers %d, its stock and all changes make %d", id, figures.Offered, want)
		}
	}
}

// SellOut pays all pending orders, and lets new buyers buy and pay one unit
// each until the whole stock of every product is paid. This shows that every
// unit can be sold.
func (b *Book) SellOut() {
	b.T.Helper()
	var sales sync.WaitGroup
	for id, product := range b.Products {
		sales.Go(func() {
			b.payAllPending(id)
			if !product.EndsAt.IsZero() && time.Now().After(product.EndsAt) {
				return // a unit was returned in the meantime and cannot be sold
			}
			for !b.soldOut(id) && !b.T.Failed() {
				b.sellSome(id)
			}
		})
	}
	sales.Wait()
}

// payAllPending waits until the queue is empty and pays every order of the
// product that can be paid. It lists them by the operator API, because after a
// long campaign most promised orders are final.
func (b *Book) payAllPending(product uint32) {
	ctx, cancel := context.WithTimeout(b.T.Context(), SettleWithin+time.Duration(len(b.promised()))*perClaim)
	defer cancel()
	filter := url.Values{"product_id": {fmt.Sprint(product)}, "status": {"pending"}}
	for calm := 0; ; {
		pending, err := b.Operator().Orders(ctx, filter)
		figures, failed := b.Operator().Stats(ctx, product)
		// One look can miss an order that moves from the queue to the store between
		// the two reads. The next look finds it.
		if calm++; err != nil || failed != nil || len(pending) > 0 || figures.Queue.Depth > 0 || figures.Store.Pending > 0 {
			calm = 0
		}
		if calm == 2 {
			return
		}
		for _, o := range pending {
			n := b.NewMoney(o.OrderNo, o.AmountCents)
			for b.Tell(ctx, n) != nil && Pause(ctx, 20*time.Millisecond) {
			}
		}
		if len(pending) == 0 && !Pause(ctx, 50*time.Millisecond) {
			b.T.Errorf("I4: orders of product %d are still queued or pending: %+v (%v, %v)", product, figures, err, failed)
			return
		}
	}
}

// sellSome lets a few buyers try once each, and pays their orders.
func (b *Book) sellSome(product uint32) {
	ctx, cancel := context.WithTimeout(b.T.Context(), SettleWithin)
	defer cancel()
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			c := b.NewClaim(b.NewBuyer(), product, engine.Purchase{Quantity: 1, Key: "last"})
			for err := b.Send(ctx, c); err != nil; err = b.Send(ctx, c) {
				if engine.CodeOf(err) == seckill.CodeSoldOut {
					return
				}
				if !Pause(ctx, 50*time.Millisecond) {
					b.T.Errorf("I7: no buyer gets a unit of product %d: %v", product, err)
					return
				}
			}
			b.payWhenPending(ctx, c)
		})
	}
	crowd.Wait()
}

// payWhenPending waits until a promised order has left the queue, and pays it
// if it is pending.
func (b *Book) payWhenPending(ctx context.Context, c *Claim) {
	order, err := b.Read(ctx, c)
	for err != nil || order.Status == "queued" {
		if !Pause(ctx, 10*time.Millisecond) {
			b.T.Errorf("I4: order %s of %s is still queued (%v)", c.No, c.Buyer.Name, err)
			return
		}
		order, err = b.Read(ctx, c)
	}
	if order.Status != "pending" {
		return
	}
	n := b.NewMoney(order.OrderNo, order.AmountCents)
	for b.Tell(ctx, n) != nil && Pause(ctx, 20*time.Millisecond) {
	}
}

// soldOut waits until no order of the product is open, as long as no unit can
// be bought. It reports whether the whole stock is paid.
func (b *Book) soldOut(product uint32) bool {
	ctx, cancel := context.WithTimeout(b.T.Context(), SettleWithin)
	defer cancel()
	for {
		f, err := b.Operator().Stats(ctx, product)
		switch {
		case err == nil && f.Available() > 0:
			return false
		case err == nil && f.Store.Stock == 0 && f.Store.Pending == 0 && f.Queue.Depth == 0:
			return true
		}
		if !Pause(ctx, 50*time.Millisecond) {
			b.T.Errorf("I7: product %d is neither free nor sold: %+v (%v)", product, f, err)
			return true
		}
	}
}
