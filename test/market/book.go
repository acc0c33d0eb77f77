// Package market runs a crowd of shoppers and operators against one or more
// engines (crowd.go), records every request and answer (book.go), and checks
// the promises I1 to I8 against that record (promise.go): over HTTP, by
// reconciliation, and in the tables (table.go). doubt.go has the times at which
// a promise may fail; rest.go waits until nothing is open.
package market

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill"
	"seckill/internal/api"
	"seckill/test/engine"
)

// acknowledged bounds the time between a worker's commit and its
// acknowledgement on a busy machine. Until then an instance that cannot reach
// the store reads the order as queued.
const acknowledged = 2 * time.Second

// Book records all requests and answers, across restarts of the instances. The
// checks compare the engine with it.
type Book struct {
	T testing.TB
	// Tables opens the store for the last checks, before and after the instances
	// stop. The default is the SQLite file of the first instance.
	Tables func(t testing.TB) *sql.DB
	// Trace, if set, is called with every purchase request and its result, from
	// many goroutines at once.
	Trace func(Act)

	engines       []*engine.Engine
	shops, admins []*engine.Engine // the instances for shoppers and for operators
	next          atomic.Uint32
	Products      map[uint32]engine.Product

	mu       sync.Mutex
	Claims   []*Claim
	notices  []*Notice
	changes  []*Change
	refunded map[string]bool      // orders that the operator was asked to refund
	paid     map[string]time.Time // when an order was seen paid first
	doubts   map[uint32][]doubt   // by product, in order of time
	away     map[uint32][]doubt   // by product: when its ledger could not be reached
	// discarded are orders whose dead letters were discarded.
	discarded map[string]bool
	// unheard counts promised keys that got sold_out from an instance whose
	// sold-out flag was still set because it had not yet heard of the sale; see
	// FlagLife.
	unheard int
	fresh   int
	extra   map[string]bool // further orders that a claim was promised after its first
}

// Claim is one buyer's request for units. It can be sent several times.
type Claim struct {
	Buyer    *engine.Buyer
	Product  uint32
	Purchase engine.Purchase
	No       string    // once promised; under the book's lock
	asked    time.Time // when it was first sent; under the book's lock
	since    time.Time // when and by which instance it was first promised
	by       *engine.Engine
	kept     bool // its order was seen in the store, not refused; under the book's lock
}

// Act is one purchase request, sent once.
type Act struct {
	At           *engine.Engine // the instance that was asked
	Buyer        string
	Product      uint32
	Purchase     engine.Purchase
	Called, Done time.Time
	No           string // of the promised order, or ""
	Err          error  // nil for a promise
}

// Notice is one payment. Its callback can be sent several times.
type Notice struct {
	engine.Notice
	heard bool // answered 200; under the book's lock
}

// Change is one change of stock. It can be sent several times.
type Change struct {
	id      string
	product uint32
	delta   int64
	begun   time.Time // before it was first sent
	dropped bool      // refused before it was recorded; under the book's lock
}

// NewBook begins a book of one engine.
func NewBook(t testing.TB, e *engine.Engine, products ...engine.Product) *Book {
	t.Helper()
	return Shared(t, []*engine.Engine{e}, products...)
}

// Shared begins a book of several instances that share ledger and store, and
// opens the sales of products. Requests go to the instances in turn.
func Shared(t testing.TB, engines []*engine.Engine, products ...engine.Product) *Book {
	t.Helper()
	b := &Book{
		T: t, engines: engines, Products: make(map[uint32]engine.Product),
		refunded: make(map[string]bool), paid: make(map[string]time.Time), doubts: make(map[uint32][]doubt),
		away:      make(map[uint32][]doubt),
		discarded: make(map[string]bool), extra: make(map[string]bool),
	}
	for _, e := range engines {
		if e.Plays(engine.RoleShop) {
			b.shops = append(b.shops, e)
		}
		if e.Plays(engine.RoleAdmin) {
			b.admins = append(b.admins, e)
		}
	}
	for _, p := range products {
		b.Open(p)
	}
	return b
}

// shop is the next instance for shoppers.
func (b *Book) shop() *engine.Engine {
	return b.shops[int(b.next.Add(1))%len(b.shops)]
}

// Operator is a client of the next instance for operators.
func (b *Book) Operator() *engine.Operator {
	return b.admins[int(b.next.Add(1))%len(b.admins)].Operator()
}

// Open opens a sale.
func (b *Book) Open(p engine.Product) {
	b.T.Helper()
	p.PerUserLimit = max(p.PerUserLimit, 1)
	if p.PriceCents == 0 {
		p.PriceCents = 100
	}
	if p.LimitGroup == 0 {
		p.LimitGroup = p.ID
	}
	b.Products[p.ID] = p
	if _, err := b.Operator().OpenSale(b.T.Context(), p); err != nil {
		b.T.Fatalf("open the sale of product %d: %v", p.ID, err)
	}
}

// NewBuyer signs in a new buyer.
func (b *Book) NewBuyer() *engine.Buyer {
	b.mu.Lock()
	b.fresh++
	name := fmt.Sprintf("buyer-%d", b.fresh)
	b.mu.Unlock()
	return b.shop().Buyer(name)
}

// NewClaim records a request before it is sent.
func (b *Book) NewClaim(buyer *engine.Buyer, product uint32, p engine.Purchase) *Claim {
	c := &Claim{Buyer: buyer, Product: product, Purchase: p}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Claims = append(b.Claims, c)
	return c
}

// Send sends a claim once and records the answer. If a key was promised an
// order, every later answer must be that order.
func (b *Book) Send(ctx context.Context, c *Claim) error { return b.SendTo(ctx, b.shop(), c) }

// SendTo is Send to a given instance.
func (b *Book) SendTo(ctx context.Context, e *engine.Engine, c *Claim) error {
	called := time.Now()
	kept := b.sending(c, called)
	no, err := c.Buyer.At(e).Buy(ctx, c.Product, c.Purchase)
	if b.Trace != nil {
		b.Trace(Act{At: e, Buyer: c.Buyer.Name, Product: c.Product, Purchase: c.Purchase, Called: called, Done: time.Now(), No: no, Err: err})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	promised := c.No != "" && c.Purchase.Key != "" && b.knows(c, kept, called)
	switch code := engine.CodeOf(err); {
	case err == nil && promised && no != c.No:
		b.T.Errorf("I4: key %s of %s was promised %s, and now %s", c.Purchase.Key, c.Buyer.Name, c.No, no)
	case err == nil && c.No == "":
		c.No, c.since, c.by = no, time.Now(), e
	case err == nil && no != c.No:
		b.also(c, no)
	case promised && code == seckill.CodeSoldOut && e != c.by && called.Sub(c.since) < FlagLife:
		b.unheard++
	case promised && (code == seckill.CodeSoldOut || code == seckill.CodeAlreadyPurchased):
		b.T.Errorf("I4: key %s of %s was promised %s of product %d, and %v later it is %s", c.Purchase.Key, c.Buyer.Name, c.No, c.Product, called.Sub(c.since), code)
	}
	return err
}

// sending records that a claim is sent, and reports whether its order was seen
// in the store before.
func (b *Book) sending(c *Claim, at time.Time) (kept bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.asked.IsZero() {
		c.asked = at
	}
	return c.kept
}

// also records a further order that a claim was promised. At most one order of
// a key may survive, because the key finds only one at rest.
func (b *Book) also(c *Claim, no string) {
	if b.extra[no] {
		return
	}
	b.extra[no] = true
	b.Claims = append(b.Claims, &Claim{Buyer: c.Buyer, Product: c.Product, Purchase: c.Purchase, No: no, asked: c.asked, since: time.Now()})
}

// OrderNo is the promised order number of a claim, or "".
func (b *Book) OrderNo(c *Claim) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.No
}

// Read reads a promised order. It must exist in some state (I4). Only if its
// ledger was in doubt, an order that the store does not have yet may be
// unknown.
func (b *Book) Read(ctx context.Context, c *Claim) (api.Order, error) {
	b.mu.Lock()
	no, asked, kept := c.No, c.asked, c.kept
	b.mu.Unlock()
	order, err := c.Buyer.At(b.shop()).Order(ctx, no)
	if engine.Answered(err) && err != nil && !Temporary(err) && (kept || !b.mayMiss(c.Product, asked, time.Now())) {
		b.T.Errorf("I4: order %s of %s was promised, and now it is %v", no, c.Buyer.Name, err)
	}
	if err == nil {
		b.sawStatus(c, order)
	}
	return order, err
}

func (b *Book) sawStatus(c *Claim, o api.Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.kept = c.kept || o.Status != "queued" && !refused(o)
	switch {
	case o.Status == "paid":
		if !b.sawPaid(o.OrderNo) {
			b.paid[o.OrderNo] = time.Now()
		}
	case o.Status == "queued" && b.Products[o.ProductID].Strategy == string(seckill.StrategyDualWrite):
		// The row was written by another path than the worker. The worker may still
		// hold the entry and not reach the store. An instance that cannot reach the
		// store either shows the old state.
	case o.Status == "queued" && b.doubted(o.ProductID, time.Now(), time.Now()):
		// The instance may reach only the ledger, in which the entry is not
		// acknowledged yet.
	case o.Status == "queued" && time.Since(b.paid[o.OrderNo]) < acknowledged:
		// A worker of another instance has committed the order but not yet
		// acknowledged the entry.
	case b.sawPaid(o.OrderNo) && o.Status != "refunded":
		b.T.Errorf("I8: order %s was paid, and now it is %s", o.OrderNo, o.Status)
	}
}

// sawPaid reports whether an order was seen paid; the caller holds the lock.
func (b *Book) sawPaid(no string) bool {
	_, paid := b.paid[no]
	return paid
}

// refused reports whether an order failed because it came to the store too late:
// its units or the buyer's limit were used up, or its key belonged to another.
func refused(o api.Order) bool {
	switch o.Reason {
	case seckill.ReasonLimit, seckill.ReasonDuplicate, seckill.ReasonLost:
		return o.Status == "failed"
	}
	return false
}

// NewMoney records a payment before its callback is sent.
func (b *Book) NewMoney(orderNo string, cents int64) *Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := &Notice{Notice: engine.Notice{OrderNo: orderNo, AmountCents: cents, TradeNo: fmt.Sprintf("trade-%d", len(b.notices)+1)}}
	b.notices = append(b.notices, n)
	return n
}

// Tell sends a callback once.
func (b *Book) Tell(ctx context.Context, n *Notice) error {
	err := b.shop().Notify(ctx, n.Notice)
	if err == nil {
		b.mu.Lock()
		n.heard = true
		b.mu.Unlock()
	} else if engine.Answered(err) && !Temporary(err) {
		b.T.Errorf("I8: callback %+v was refused: %v", n.Notice, err)
	}
	return err
}

// Refund refunds an order by the operator API.
func (b *Book) Refund(ctx context.Context, orderNo string) error {
	b.mu.Lock()
	b.refunded[orderNo] = true
	b.mu.Unlock()
	_, err := b.Operator().Refund(ctx, orderNo)
	return err
}

// NewChange records a change of stock before it is sent.
func (b *Book) NewChange(product uint32, delta int64) *Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Change{id: fmt.Sprintf("change-%d", len(b.changes)+1), product: product, delta: delta, begun: time.Now()}
	b.changes = append(b.changes, c)
	return c
}

// SendChange sends a change once.
func (b *Book) SendChange(ctx context.Context, c *Change) error {
	_, err := b.Operator().ChangeStock(ctx, c.product, c.delta, c.id)
	if engine.CodeOf(err) == seckill.CodeBadRequest { // more than the stock: nothing was recorded
		b.mu.Lock()
		c.dropped = true
		b.mu.Unlock()
	}
	return err
}

// StockChange is a change of stock as the book knows it.
type StockChange struct {
	ID      string
	Product uint32
	Delta   int64
	Begun   time.Time // before it was first sent
}

// StockChanges are all changes that the engine may have recorded.
func (b *Book) StockChanges() (changes []StockChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.changes {
		if !c.dropped {
			changes = append(changes, StockChange{c.id, c.product, c.delta, c.begun})
		}
	}
	return changes
}

// Unheard is how often a promised key got sold_out within FlagLife of its
// promise.
func (b *Book) Unheard() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unheard
}

// Buy sends a claim of a new buyer until it has an answer. It fails the test if
// the answer is no promise.
func (b *Book) Buy(product uint32, quantity int) *Claim {
	b.T.Helper()
	c := b.NewClaim(b.NewBuyer(), product, engine.Purchase{Quantity: quantity, Key: "first"})
	if err := UntilAnswered(b.T, "buy", func(ctx context.Context) error { return b.Send(ctx, c) }); err != nil {
		b.T.Fatalf("buy: %v", err)
	}
	return c
}

// Confirmed waits until the claim's order is in the store.
func (b *Book) Confirmed(c *Claim) api.Order {
	b.T.Helper()
	var order api.Order
	Eventually(b.T, "the order is confirmed", func(ctx context.Context) bool {
		var err error
		order, err = b.Read(ctx, c)
		return err == nil && order.Status != "queued"
	})
	return order
}

// Pay pays the claim's order exactly, and waits until it is paid.
func (b *Book) Pay(c *Claim) {
	b.T.Helper()
	order := b.Confirmed(c)
	n := b.NewMoney(order.OrderNo, order.AmountCents)
	if err := UntilAnswered(b.T, "pay", func(ctx context.Context) error { return b.Tell(ctx, n) }); err != nil {
		b.T.Fatalf("pay: %v", err)
	}
}

// Summary counts the requests in the book.
func (b *Book) Summary() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%d claims, %d callbacks, %d stock changes", len(b.Claims), len(b.notices), len(b.changes))
}
