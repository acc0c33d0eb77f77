package crash

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"seckill"
	"seckill/internal/wire"
	"seckill/test/engine"
)

// book is the outside's record of all that was asked and answered, over every
// life of the engine. It is what the promises are checked against.
type book struct {
	t        testing.TB
	engine   *engine.Engine
	operator *engine.Operator
	products map[uint32]engine.Product

	mu       sync.Mutex
	claims   []*claim
	notices  []*notice
	changes  []*change
	refunded map[string]bool // orders that the operator was asked to refund
	paid     map[string]bool // orders that were seen paid
	// rebuilt are products whose epoch has changed: their ledger has forgotten
	// the keys of dead orders, and promises of the old epoch may have failed.
	rebuilt map[uint32]bool
	fresh   int
}

// claim is one buyer's request for units, however often it is sent.
type claim struct {
	buyer    *engine.Buyer
	product  uint32
	purchase engine.Purchase
	no       string // once promised; under the book's lock
}

// notice is one movement of money, however often it is told.
type notice struct {
	engine.Notice
	heard bool // answered 200; under the book's lock
}

// change is one change of stock, however often it is sent.
type change struct {
	id      string
	product uint32
	delta   int64
	dropped bool // refused before it was recorded; under the book's lock
}

// newBook opens the sales of products.
func newBook(t testing.TB, e *engine.Engine, products ...engine.Product) *book {
	t.Helper()
	b := &book{
		t: t, engine: e, operator: e.Operator(), products: make(map[uint32]engine.Product),
		refunded: make(map[string]bool), paid: make(map[string]bool), rebuilt: make(map[uint32]bool),
	}
	for _, p := range products {
		b.open(p)
	}
	return b
}

// open opens a sale.
func (b *book) open(p engine.Product) {
	b.t.Helper()
	p.PerUserLimit = max(p.PerUserLimit, 1)
	if p.PriceCents == 0 {
		p.PriceCents = 100
	}
	if p.LimitGroup == 0 {
		p.LimitGroup = p.ID
	}
	b.products[p.ID] = p
	if _, err := b.operator.OpenSale(b.t.Context(), p); err != nil {
		b.t.Fatalf("open the sale of product %d: %v", p.ID, err)
	}
}

// buyer signs somebody in who has bought nothing yet.
func (b *book) buyer() *engine.Buyer {
	b.mu.Lock()
	b.fresh++
	name := fmt.Sprintf("buyer-%d", b.fresh)
	b.mu.Unlock()
	return b.engine.Buyer(name)
}

// claim notes a request that is about to be sent.
func (b *book) claim(buyer *engine.Buyer, product uint32, p engine.Purchase) *claim {
	c := &claim{buyer: buyer, product: product, purchase: p}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims = append(b.claims, c)
	return c
}

// send sends a claim once and takes the answer into the book. A key that was
// promised an order must be answered with that order ever after.
func (b *book) send(ctx context.Context, c *claim) error {
	no, err := c.buyer.Buy(ctx, c.product, c.purchase)
	b.mu.Lock()
	defer b.mu.Unlock()
	promised := c.no != "" && c.purchase.Key != "" && !b.rebuilt[c.product]
	switch code := engine.CodeOf(err); {
	case err == nil && promised && no != c.no:
		b.t.Errorf("I4: key %s of %s was promised %s, and now %s", c.purchase.Key, c.buyer.Name, c.no, no)
	case err == nil && c.no == "":
		c.no = no
	case promised && (code == seckill.CodeSoldOut || code == seckill.CodeAlreadyPurchased):
		b.t.Errorf("I4: key %s of %s was promised %s, and now it is %s", c.purchase.Key, c.buyer.Name, c.no, code)
	}
	return err
}

// orderNo is the number that a claim was promised, or "".
func (b *book) orderNo(c *claim) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.no
}

// read reads a promised order: it may be anything but nothing (I4).
func (b *book) read(ctx context.Context, c *claim) (wire.Order, error) {
	no := b.orderNo(c)
	order, err := c.buyer.Order(ctx, no)
	if engine.Answered(err) && err != nil && !temporary(err) {
		b.t.Errorf("I4: order %s of %s was promised, and now it is %v", no, c.buyer.Name, err)
	}
	if err == nil {
		b.sawStatus(order)
	}
	return order, err
}

func (b *book) sawStatus(o wire.Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o.Status == "paid":
		b.paid[o.OrderNo] = true
	case b.paid[o.OrderNo] && o.Status != "refunded":
		b.t.Errorf("I8: order %s was paid, and now it is %s", o.OrderNo, o.Status)
	}
}

// money notes money that is about to be told of.
func (b *book) money(orderNo string, cents int64) *notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := &notice{Notice: engine.Notice{OrderNo: orderNo, AmountCents: cents, TradeNo: fmt.Sprintf("trade-%d", len(b.notices)+1)}}
	b.notices = append(b.notices, n)
	return n
}

// tell delivers a callback once.
func (b *book) tell(ctx context.Context, n *notice) error {
	err := b.engine.Notify(ctx, n.Notice)
	if err == nil {
		b.mu.Lock()
		n.heard = true
		b.mu.Unlock()
	} else if engine.Answered(err) && !temporary(err) {
		b.t.Errorf("I8: callback %+v was refused: %v", n.Notice, err)
	}
	return err
}

// refund asks the operator API to refund an order.
func (b *book) refund(ctx context.Context, orderNo string) error {
	b.mu.Lock()
	b.refunded[orderNo] = true
	b.mu.Unlock()
	_, err := b.operator.Refund(ctx, orderNo)
	return err
}

// change notes a change of stock that is about to be sent.
func (b *book) change(product uint32, delta int64) *change {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &change{id: fmt.Sprintf("change-%d", len(b.changes)+1), product: product, delta: delta}
	b.changes = append(b.changes, c)
	return c
}

// sendChange sends a change once.
func (b *book) sendChange(ctx context.Context, c *change) error {
	_, err := b.operator.ChangeStock(ctx, c.product, c.delta, c.id)
	if engine.CodeOf(err) == seckill.CodeBadRequest { // more than the stock: nothing was recorded
		b.mu.Lock()
		c.dropped = true
		b.mu.Unlock()
	}
	return err
}

// rebuild marks a product as one whose epoch changes.
func (b *book) rebuild(product uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rebuilt[product] = true
}

// buy sends a claim of a new buyer until it has an answer, and wants it to be
// a promise.
func (b *book) buy(product uint32, quantity int) *claim {
	b.t.Helper()
	c := b.claim(b.buyer(), product, engine.Purchase{Quantity: quantity, Key: "first"})
	if err := untilAnswered(b.t, "buy", func(ctx context.Context) error { return b.send(ctx, c) }); err != nil {
		b.t.Fatalf("buy: %v", err)
	}
	return c
}

// confirmed waits until the claim's order is in the store.
func (b *book) confirmed(c *claim) wire.Order {
	b.t.Helper()
	var order wire.Order
	eventually(b.t, "the order is confirmed", func(ctx context.Context) bool {
		var err error
		order, err = b.read(ctx, c)
		return err == nil && order.Status != "queued"
	})
	return order
}

// pay pays the claim's order exactly, and wants it paid.
func (b *book) pay(c *claim) {
	b.t.Helper()
	order := b.confirmed(c)
	n := b.money(order.OrderNo, order.AmountCents)
	if err := untilAnswered(b.t, "pay", func(ctx context.Context) error { return b.tell(ctx, n) }); err != nil {
		b.t.Fatalf("pay: %v", err)
	}
}
