// Package order serves an order after the ledger has promised it: reading, paying,
// cancelling, expiring, refunding, and the return of its units. The store decides
// every change of state.
package order

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/sale"
	"seckill/internal/store"
)

// Store is what the desk reads and moves.
type Store interface {
	store.Orders
	store.Letters
	Product(ctx context.Context, id uint32) (seckill.Product, error)
	RecordPayment(ctx context.Context, notice payment.Notice) (store.PaymentResult, error)
	RetryRefund(ctx context.Context, id string, actor store.Actor) (store.Payment, error)
}

// Queue tells what waits for the worker.
type Queue interface {
	Stats(ctx context.Context, product uint32) (queue.Stats, error)
	Waiting(ctx context.Context) ([]uint32, error)
	Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error)
}

// Desk is where shoppers and operators ask about orders.
type Desk struct {
	Store     Store
	Ledger    ledger.Ledger
	Queue     Queue
	Catalog   *sale.Catalog
	Providers map[string]payment.Provider
	// PayPages are the providers at which a buyer can pay; the others only
	// report money.
	PayPages []string
	// BackURL is where a buyer who has paid an order returns to; nil leaves it to
	// the provider.
	BackURL func(o *seckill.Order) string
	// MayBeStored reports whether the store may have an order whose entry still
	// waits, as far as this process knows; nil knows of none.
	MayBeStored func(no seckill.OrderNo) bool
	// Keeps reports whether a product's ledger is rebuilt if it is lost, as is not
	// done long after its sale; nil says that all are.
	Keeps func(p *seckill.Product) bool
	// ReadWithin bounds a read; 0 is readWithin, which a shopper's patience sets.
	ReadWithin time.Duration
	// OnReturn is told whose units have come back: to the ledger they are owed,
	// unless the store had sold them.
	OnReturn func(o *seckill.Order)
	// OnRefund is told that money is owed now.
	OnRefund func()
	// OnPayment sees what every authentic notice did. product is 0 if its order
	// number is none of ours.
	OnPayment func(product uint32, result string)
}

var errNotFound = &seckill.Error{Code: seckill.CodeNotFound}

// Find reads a buyer's order: from the store, else from the ladder, else from
// the ledger that promised it. An order of another buyer is not_found; a
// ledger that cannot be asked is busy, never not_found. With the store away an
// order that still waits in the ledger is found all the same; of any other
// only the store could say what became of it, and the answer is busy.
func (d *Desk) Find(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	ctx, cancel := d.brief(ctx)
	defer cancel()
	found, err := d.inStore(ctx, buyer, no)
	if isAway(err) {
		return d.waitingOnly(ctx, buyer, no)
	}
	if !seckill.CodeNotFound.In(err) {
		return found, err
	}
	queued, err := d.queued(ctx, buyer, no)
	if isAway(err) {
		return d.waitingOnly(ctx, buyer, no)
	}
	if !seckill.CodeNotFound.In(err) {
		return queued, err
	}
	unadopted, err := d.unadopted(ctx, no)
	if err != nil {
		return seckill.Order{}, err
	}
	// It may have left the ledger since the store was read: confirmed and
	// released again in between.
	found, err = d.inStore(ctx, buyer, no)
	if seckill.CodeNotFound.In(err) && unadopted {
		return found, seckill.Errorf(seckill.CodeBusy, "the sale was recovered; orders of before are still being adopted")
	}
	return found, err
}

// Shown reads an order for whoever has a link to it. Links are made of orders
// that the store has, so that nobody else is asked; what could name the buyer
// is left out. The buyer comes apart, for limits, and must not be shown.
func (d *Desk) Shown(ctx context.Context, no seckill.OrderNo) (o seckill.Order, buyer string, err error) {
	ctx, cancel := d.brief(ctx)
	defer cancel()
	o, err = d.Store.Order(ctx, no)
	if isAway(err) {
		return seckill.Order{}, "", seckill.Errorf(seckill.CodeBusy, "read order: %w", err)
	}
	return Bare(o), o.Buyer, err
}

// Bare is an order without what could name its buyer: the shop's reference is
// the shop's to choose.
func Bare(o seckill.Order) seckill.Order {
	o.Buyer, o.Ref, o.Key = "", "", ""
	return o
}

// unadopted reports whether the order could be in an entry of an older epoch:
// a recovered ledger holds no mark of it until a worker has adopted it, and
// that is no reason to tell its buyer that it never was.
func (d *Desk) unadopted(ctx context.Context, no seckill.OrderNo) (bool, error) {
	s, err := d.Catalog.LookForVisitor(ctx, no.ProductID())
	if err != nil || s == nil || s.Terms().Epoch < 2 {
		return false, err
	}
	waiting, err := d.Queue.Stats(ctx, s.ID)
	if err != nil {
		return false, seckill.Errorf(seckill.CodeBusy, "read queue: %w", deaf{err})
	}
	return waiting.Reservations > 0, nil
}

func (d *Desk) inStore(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	o, err := d.Store.Order(ctx, no)
	if err == nil && o.Buyer != buyer {
		return seckill.Order{}, errNotFound
	}
	return o, err
}

// queued looks where a promise waits: on the ladder or in the ledger.
func (d *Desk) queued(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	bounded, cancel := patient(ctx)
	defer cancel()
	letter, err := d.Store.LetterByOrder(bounded, no)
	if err == nil {
		if letter.Item.Claim.Buyer != buyer {
			return seckill.Order{}, errNotFound
		}
		return letterOrder(&letter), nil
	}
	if !seckill.CodeNotFound.In(err) {
		return seckill.Order{}, err
	}
	s, err := d.Catalog.LookForVisitor(bounded, no.ProductID())
	if err != nil {
		return seckill.Order{}, err
	}
	if s == nil || s.Terms().Epoch == 0 {
		return seckill.Order{}, d.unopened(bounded, no.ProductID())
	}
	held, err := d.held(ctx, s, buyer)
	if err != nil {
		return seckill.Order{}, err
	}
	for _, o := range held {
		if o.OrderNo == no {
			return o, nil
		}
	}
	return seckill.Order{}, d.missing(ctx, s, buyer)
}

// unopened is not_found if the product's ledger was never opened, by the store's
// word: another instance may have opened it a moment ago, and sold.
func (d *Desk) unopened(ctx context.Context, product uint32) error {
	p, err := d.Store.Product(ctx, product)
	if err == nil && p.Epoch != 0 && p.HasLedger() {
		return seckill.Errorf(seckill.CodeBusy, "this instance has not heard of the sale yet")
	}
	if err == nil {
		return errNotFound
	}
	return err
}

// missing is not_found on the word of a ledger that can give it. One that has
// lost its marks, or was set back, has lost the order's too, and its row may not
// be there yet: instances remember what they promised.
func (d *Desk) missing(ctx context.Context, s *sale.Sale, buyer string) error {
	p := s.Terms()
	if p.SoldByStore() {
		return soldByStore(p)
	}
	return d.missingFrom(ctx, s, seckill.HomeShard(p, buyer))
}

// soldByStore is what is said of an order that the store does not have, though it
// sells the product. After a takeover the old ledger may still bring it.
func soldByStore(p *seckill.Product) error {
	if p.HasLedger() {
		return seckill.Errorf(seckill.CodeBusy, "the store has taken the sale over; orders that only the ledger knows are read when it is back")
	}
	return errNotFound
}

// missingFrom is not_found on the word of these shards.
func (d *Desk) missingFrom(ctx context.Context, s *sale.Sale, shards ...int) error {
	p := s.Terms()
	whole := !p.Rebuilding
	kept := d.Catalog.Find(p.ID) != nil && (d.Keeps == nil || d.Keeps(p))
	if whole && kept {
		for _, index := range shards {
			figures, err := d.Ledger.Read(ctx, s.Shard(index))
			if err != nil {
				return seckill.Errorf(seckill.CodeBusy, "ask the ledger: %w", deaf{err})
			}
			whole = whole && figures.Open && figures.Epoch == p.Epoch
		}
	}
	if !whole {
		return seckill.Errorf(seckill.CodeBusy, "the product's ledger is being rebuilt")
	}
	return errNotFound
}

func letterOrder(l *store.Letter) seckill.Order {
	o := l.Item.Order()
	o.Reason = seckill.ReasonRetrying
	if l.Dead {
		o.Reason = seckill.ReasonDead
	}
	return o
}

// held lists what the ledger holds for a buyer of one product, as queued
// orders. An order whose entry is acknowledged has a row; it is listed with
// what the mark still knows.
func (d *Desk) held(ctx context.Context, s *sale.Sale, buyer string) ([]seckill.Order, error) {
	return d.heldIf(ctx, s, buyer, func(*ledger.Holding) bool { return true })
}

// heldWaiting lists those of which the entry is not acknowledged. A ledger that
// was set back has entries again that the store has long had, paid ones among
// them: one that is closed, or not of the present epoch, is not believed.
func (d *Desk) heldWaiting(ctx context.Context, s *sale.Sale, buyer string) ([]seckill.Order, error) {
	waiting, err := d.heldIf(ctx, s, buyer, func(h *ledger.Holding) bool { return h.Entry.ProductID != 0 })
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	p := s.Terms()
	figures, err := d.Ledger.Read(ctx, s.Shard(seckill.HomeShard(p, buyer)))
	if err != nil {
		return nil, seckill.Errorf(seckill.CodeBusy, "ask the ledger: %w", deaf{err})
	}
	if !figures.Open || figures.Epoch != p.Epoch || p.Rebuilding {
		return nil, errDoubt
	}
	return waiting, nil
}

func (d *Desk) heldIf(ctx context.Context, s *sale.Sale, buyer string, wanted func(*ledger.Holding) bool) ([]seckill.Order, error) {
	p := s.Terms()
	if p.Epoch == 0 || p.LedgerShards() == 0 {
		return nil, nil
	}
	shard := s.Shard(seckill.HomeShard(p, buyer))
	holdings, err := d.Ledger.Held(ctx, shard, buyer)
	if err != nil {
		return nil, seckill.Errorf(seckill.CodeBusy, "ask the ledger: %w", deaf{err})
	}
	orders := make([]seckill.Order, 0, len(holdings))
	for _, h := range holdings {
		if wanted(&h) {
			orders = append(orders, heldOrder(p, &h, buyer, shard))
		}
	}
	return orders, nil
}

func heldOrder(p *seckill.Product, h *ledger.Holding, buyer string, shard ledger.Shard) seckill.Order {
	o := seckill.Order{
		OrderNo: h.OrderNo, Buyer: buyer, ProductID: p.ID, Group: p.Group, ProductName: p.Name,
		PriceCents: p.PriceCents, Currency: p.Currency, Quantity: h.Quantity, Key: h.Key,
		Status: seckill.OrderQueued, CreatedAt: h.OrderNo.Time(), Epoch: shard.Epoch, Shard: shard.Index,
	}
	if e := &h.Entry; e.ProductID != 0 {
		o.ProductName, o.PriceCents, o.Currency, o.CreatedAt, o.Epoch = e.Name, e.PriceCents, e.Currency, e.At, e.Epoch
		if len(e.Claims) == 1 {
			o.Ref = e.Claims[0].Ref
		}
	}
	return o
}

// BeginPayment gives the address at which the buyer pays a pending order.
func (d *Desk) BeginPayment(ctx context.Context, buyer string, no seckill.OrderNo, provider string) (payment.Session, error) {
	with := d.Providers[provider]
	switch {
	case with == nil:
		return payment.Session{}, seckill.Errorf(seckill.CodeBadRequest, "provider %q is not configured", provider)
	case !slices.Contains(d.PayPages, provider):
		return payment.Session{}, seckill.Errorf(seckill.CodeBadRequest, "provider %q has no pay page here: this shop's is elsewhere", provider)
	}
	o, err := d.Find(ctx, buyer, no)
	if err != nil {
		return payment.Session{}, err
	}
	if o.Status == seckill.OrderQueued {
		return payment.Session{}, tooEarly("pay")
	}
	if o.Status != seckill.OrderPending {
		return payment.Session{}, seckill.Errorf(seckill.CodeWrongState, "cannot pay an order that is %s", o.Status)
	}
	back := ""
	if d.BackURL != nil {
		back = d.BackURL(&o)
	}
	session, err := with.Begin(ctx, &o, back)
	if err != nil {
		return session, seckill.Errorf(seckill.CodeBusy, "begin payment: %w", err)
	}
	return session, nil
}

// tooEarly refuses what an order allows as soon as it has left the queue.
func tooEarly(move string) error {
	return seckill.Errorf(seckill.CodeWrongState, "cannot %s an order that is queued; ask again in a moment", move).
		Titled("The order is still being made, please try again in a moment.", "订单正在生成，请稍后再试")
}

// Takes reports whether a provider is configured, and with it its callbacks.
func (d *Desk) Takes(provider string) bool { return d.Providers[provider] != nil }

// Notify takes a provider's callback: money that is authentic is recorded
// once, and pays its order or is refunded. While its order may still be queued
// nothing is recorded and the answer is busy, so that the provider comes again.
func (d *Desk) Notify(ctx context.Context, provider string, header http.Header, body []byte) (store.PaymentResult, error) {
	from := d.Providers[provider]
	if from == nil {
		return 0, seckill.Errorf(seckill.CodeNotFound, "provider %q is not configured", provider)
	}
	notice, err := from.Notice(ctx, header, body)
	switch {
	case errors.Is(err, payment.ErrNotAuthentic):
		return 0, seckill.Errorf(seckill.CodeTokenInvalid, "the callback's signature is wrong").
			Titled("The signature is not valid.", "签名无效")
	case errors.Is(err, payment.ErrMalformed):
		return 0, seckill.Errorf(seckill.CodeBadRequest, "%w", err)
	case err != nil:
		return 0, err
	}
	if err := d.awaited(ctx, notice.OrderNo); err != nil {
		return 0, err
	}
	// The store looks for the order again, and decides in one transaction.
	result, err := d.Store.RecordPayment(ctx, notice)
	if err != nil {
		return result, err
	}
	no, _ := seckill.ParseOrderNo(notice.OrderNo) // the zero number is of product 0
	d.OnPayment(no.ProductID(), result.String())
	switch result {
	case store.PaymentExcess:
		d.OnRefund()
	case store.PaymentConflict:
		return result, seckill.Errorf(seckill.CodeWrongState, "trade %q was recorded with another order, amount or currency", notice.TradeNo)
	}
	return result, nil
}

// Acknowledge returns the answer to a callback that Notify took, or refused, in
// the words of its provider. Status 0 leaves the answer to the caller.
func (d *Desk) Acknowledge(provider string, refusal error) payment.Acknowledgement {
	from := d.Providers[provider]
	if from == nil {
		return payment.Acknowledgement{}
	}
	return from.Acknowledge(refusal)
}

// CancelOwn cancels a buyer's own order.
func (d *Desk) CancelOwn(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	o, err := d.Find(ctx, buyer, no)
	if err != nil {
		return o, err
	}
	if o.Status == seckill.OrderQueued {
		return o, tooEarly("cancel")
	}
	return d.Cancel(ctx, no, seckill.ReasonByBuyer, store.Actor{Name: "buyer"})
}

// Cancel cancels a pending order. One that is queued is wrong_state, one that
// may be is busy.
func (d *Desk) Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error) {
	o, err := d.move(ctx, no, "cancel", func() (seckill.Order, error) { return d.Store.Cancel(ctx, no, reason, actor) })
	if err == nil {
		d.OnReturn(&o)
	}
	return o, err
}

// Refund refunds a paid order: its unit returns, and its money. Of one that is
// not in the store it says what Cancel does.
func (d *Desk) Refund(ctx context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error) {
	o, err := d.move(ctx, no, "refund", func() (seckill.Order, error) { return d.Store.Refund(ctx, no, actor) })
	if err == nil {
		d.OnReturn(&o)
		d.OnRefund()
	}
	return o, err
}

// RetryRefund has a refund that was given up tried again, beginning now.
func (d *Desk) RetryRefund(ctx context.Context, id string, actor store.Actor) (store.Payment, error) {
	refund, err := d.Store.RetryRefund(ctx, id, actor)
	if err == nil {
		d.OnRefund()
	}
	return refund, err
}

// Retry gives a letter a fresh ladder, beginning now.
func (d *Desk) Retry(ctx context.Context, id int64, actor store.Actor) (store.Letter, error) {
	return d.Store.RetryLetter(ctx, id, actor)
}

// Discard gives a letter up: its order fails, its unit returns.
func (d *Desk) Discard(ctx context.Context, id int64, actor store.Actor) (seckill.Order, error) {
	o, err := d.Store.DiscardLetter(ctx, id, actor)
	if err == nil {
		d.OnReturn(&o)
	}
	var told *seckill.Error
	if err != nil && !errors.As(err, &told) && !errors.Is(err, store.ErrUnavailable) {
		// What keeps the claim from being written may keep its failure from it too.
		err = seckill.Errorf(seckill.CodeBusy, "the order cannot be written as failed either: %w", err)
	}
	return o, err
}
