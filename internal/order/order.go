// Package order serves an order after the ledger has promised it: reading,
// paying, cancelling, expiring, refunding, and the return of its units. The
// store decides every change of state.
//
//   - order.go, list.go, look.go: reads and changes for buyers and operators
//   - away.go: reads while the store or the ledger is away
//   - expirer.go: the scan that expires unpaid orders; expiry_*.go: the same by delayed messages of a broker
//   - releaser.go: returns units to the ledger; refunder.go: returns money
package order

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"seckill"
	"seckill/internal/background"
	"seckill/internal/ledger"
	"seckill/internal/payment"
	"seckill/internal/queue"
	"seckill/internal/sale"
	"seckill/internal/store"
)

// Store is the part of the store that Orders uses.
type Store interface {
	store.Orders
	store.Letters
	Product(ctx context.Context, id uint32) (seckill.Product, error)
	RecordPayment(ctx context.Context, notice payment.Notice) (store.PaymentResult, error)
	RetryRefund(ctx context.Context, id string, actor store.Actor) (store.Payment, error)
}

// Queue reads entries that wait for a worker.
type Queue interface {
	Stats(ctx context.Context, product uint32) (queue.Stats, error)
	Waiting(ctx context.Context) ([]uint32, error)
	Find(ctx context.Context, product uint32, no seckill.OrderNo, most int) (seckill.Entry, bool, error)
}

// Orders serves requests about orders from shoppers and operators.
type Orders struct {
	Store     Store
	Ledger    ledger.Ledger
	Queue     Queue
	Catalog   *sale.Catalog
	Providers map[string]payment.Provider
	// PayPages names the providers that have a page where a buyer pays. The
	// others only report money.
	PayPages []string
	// BackURL is the address to which a buyer returns after paying; nil leaves
	// it to the provider.
	BackURL func(o *seckill.Order) string
	// MayBeStored reports whether the store may have an order whose entry still
	// waits, as far as this process knows. nil means never.
	MayBeStored func(no seckill.OrderNo) bool
	// Keeps reports whether a lost ledger of the product is rebuilt. Long after
	// its sale it is not. nil means always.
	Keeps func(p *seckill.Product) bool
	// ReadWithin bounds a read. 0 means readWithin, which is how long a shopper
	// waits.
	ReadWithin time.Duration
	// Duties wakes the releaser and the refunder.
	Duties sale.Waker
	// OnPayment gets the outcome of every authentic notice. product is 0 if the
	// order number is not one of ours.
	OnPayment func(product uint32, result string)
}

// UnitsBack is called for an order whose units are free again. They are owed to the
// ledger, unless the store sells the product: then they are free already.
func (d *Orders) UnitsBack(o *seckill.Order) {
	s := d.Catalog.Find(o.ProductID)
	if s == nil || !s.Terms().SoldByStore() {
		d.Duties.Wake(background.DutyRelease)
		return
	}
	s.ClearSoldOut()
}

var errNotFound = &seckill.Error{Code: seckill.CodeNotFound}

// Find reads a buyer's order from the store, the retry ladder, or the ledger
// that promised it. An order of another buyer is not_found. If the ledger does
// not answer, the answer is busy, never not_found. If the store is away, an
// order that still waits in the ledger is found; any other is busy, because
// only the store knows its state.
func (d *Orders) Find(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	ctx, cancel := d.withReadDeadline(ctx)
	defer cancel()
	found, err := d.inStore(ctx, buyer, no)
	if isStoreAway(err) {
		return d.waitingOnly(ctx, buyer, no)
	}
	if !seckill.CodeNotFound.In(err) {
		return found, err
	}
	queued, err := d.queued(ctx, buyer, no)
	if isStoreAway(err) {
		return d.waitingOnly(ctx, buyer, no)
	}
	if !seckill.CodeNotFound.In(err) {
		return queued, err
	}
	unadopted, err := d.unadopted(ctx, no)
	if err != nil {
		return seckill.Order{}, err
	}
	// The order may have left the ledger since the store was read: confirmed
	// and released in between.
	found, err = d.inStore(ctx, buyer, no)
	if seckill.CodeNotFound.In(err) && unadopted {
		return found, seckill.Errorf(seckill.CodeBusy, "the sale was recovered; orders of before are still being adopted")
	}
	return found, err
}

// Shown reads an order for anyone who has its link, without the fields that
// could name the buyer. Links exist only for orders in the store, so only the
// store is read. The buyer is returned separately for rate limits, and must not
// be shown.
func (d *Orders) Shown(ctx context.Context, no seckill.OrderNo) (o seckill.Order, buyer string, err error) {
	ctx, cancel := d.withReadDeadline(ctx)
	defer cancel()
	o, err = d.Store.Order(ctx, no)
	if isStoreAway(err) {
		return seckill.Order{}, "", seckill.Errorf(seckill.CodeBusy, "read order: %w", err)
	}
	return Bare(o), o.Buyer, err
}

// Bare returns the order without the fields that could name its buyer. The
// reference is one of them, because the shop chooses it.
func Bare(o seckill.Order) seckill.Order {
	o.Buyer, o.Ref, o.Key = "", "", ""
	return o
}

// unadopted reports whether the order may be in an entry of an older epoch. A
// rebuilt ledger has no mark of such an order until a worker adopts it, so its
// absence does not prove that it does not exist.
func (d *Orders) unadopted(ctx context.Context, no seckill.OrderNo) (bool, error) {
	s, err := d.Catalog.LookForVisitor(ctx, no.ProductID())
	if err != nil || s == nil || s.Terms().Epoch < 2 {
		return false, err
	}
	waiting, err := d.Queue.Stats(ctx, s.ID)
	if err != nil {
		return false, seckill.Errorf(seckill.CodeBusy, "read queue: %w", ledgerAway{err})
	}
	return waiting.Reservations > 0, nil
}

func (d *Orders) inStore(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	ctx, cancel := withFirstShare(ctx)
	defer cancel()
	o, err := d.Store.Order(ctx, no)
	if err == nil && o.Buyer != buyer {
		return seckill.Order{}, errNotFound
	}
	return o, err
}

// queued looks on the retry ladder and in the ledger.
func (d *Orders) queued(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	bounded, cancel := withFirstShare(ctx)
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

// unopened returns not_found if, according to the store, the ledger was never
// opened. Another instance may have opened it a moment ago, and sold.
func (d *Orders) unopened(ctx context.Context, product uint32) error {
	p, err := d.Store.Product(ctx, product)
	if err == nil && p.Epoch != 0 && p.HasLedger() {
		return seckill.Errorf(seckill.CodeBusy, "this instance has not heard of the sale yet")
	}
	if err == nil {
		return errNotFound
	}
	return err
}

// missing returns not_found only if the ledger is complete. A ledger that lost
// its marks, or was set back, may have lost this order, and its row may not be
// there yet: instances remember their promises.
func (d *Orders) missing(ctx context.Context, s *sale.Sale, buyer string) error {
	p := s.Terms()
	if p.SoldByStore() {
		return soldByStore(p)
	}
	return d.missingFrom(ctx, s, seckill.HomeShard(p, buyer))
}

// soldByStore is the error for an order that is not in the store, although the
// store sells the product. After a takeover the old ledger may still have it.
func soldByStore(p *seckill.Product) error {
	if p.HasLedger() {
		return seckill.Errorf(seckill.CodeBusy, "the store has taken the sale over; orders that only the ledger knows are read when it is back")
	}
	return errNotFound
}

// missingFrom returns not_found only if these shards are open and of the
// present epoch.
func (d *Orders) missingFrom(ctx context.Context, s *sale.Sale, shards ...int) error {
	p := s.Terms()
	whole := !p.Rebuilding
	kept := d.Catalog.Find(p.ID) != nil && (d.Keeps == nil || d.Keeps(p))
	if whole && kept {
		for _, index := range shards {
			figures, err := d.Ledger.Read(ctx, s.Shard(index))
			if err != nil {
				return seckill.Errorf(seckill.CodeBusy, "ask the ledger: %w", ledgerAway{err})
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

// held lists the orders that the ledger holds for a buyer of one product, as
// queued orders. An order whose entry is acknowledged has a row; it is listed
// with the data of its mark.
func (d *Orders) held(ctx context.Context, s *sale.Sale, buyer string) ([]seckill.Order, error) {
	return d.heldIf(ctx, s, buyer, func(*ledger.Holding) bool { return true })
}

// heldWaiting lists those whose entry is not acknowledged. A ledger that was
// set back has old entries again, also of orders that are paid. So the result
// is an error if the shard is closed or not of the present epoch.
func (d *Orders) heldWaiting(ctx context.Context, s *sale.Sale, buyer string) ([]seckill.Order, error) {
	waiting, err := d.heldIf(ctx, s, buyer, func(h *ledger.Holding) bool { return h.Entry.ProductID != 0 })
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	p := s.Terms()
	figures, err := d.Ledger.Read(ctx, s.Shard(seckill.HomeShard(p, buyer)))
	if err != nil {
		return nil, seckill.Errorf(seckill.CodeBusy, "ask the ledger: %w", ledgerAway{err})
	}
	if !figures.Open || figures.Epoch != p.Epoch || p.Rebuilding {
		return nil, errDoubt
	}
	return waiting, nil
}

func (d *Orders) heldIf(ctx context.Context, s *sale.Sale, buyer string, wanted func(*ledger.Holding) bool) ([]seckill.Order, error) {
	p := s.Terms()
	if p.Epoch == 0 || p.LedgerShards() == 0 {
		return nil, nil
	}
	shard := s.Shard(seckill.HomeShard(p, buyer))
	holdings, err := d.Ledger.Held(ctx, shard, buyer)
	if err != nil {
		return nil, seckill.Errorf(seckill.CodeBusy, "ask the ledger: %w", ledgerAway{err})
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

// BeginPayment returns the address at which the buyer pays a pending order.
func (d *Orders) BeginPayment(ctx context.Context, buyer string, no seckill.OrderNo, provider string) (payment.Session, error) {
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

// tooEarly is the error for a change that is allowed as soon as the order has
// left the queue.
func tooEarly(move string) error {
	return seckill.Errorf(seckill.CodeWrongState, "cannot %s an order that is queued; ask again in a moment", move).
		Titled("The order is still being made, please try again in a moment.", "订单正在生成，请稍后再试")
}

// Takes reports whether a provider is configured, so that its callbacks are
// accepted.
func (d *Orders) Takes(provider string) bool { return d.Providers[provider] != nil }

// Notify handles a callback of a provider. Authentic money is recorded once,
// and pays its order or is refunded. While its order may still be queued,
// nothing is recorded and the answer is busy, so that the provider sends it
// again.
func (d *Orders) Notify(ctx context.Context, provider string, header http.Header, body []byte) (store.PaymentResult, error) {
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
	if err := d.checkNotQueued(ctx, notice.OrderNo); err != nil {
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
		d.Duties.Wake(background.DutyRefund)
	case store.PaymentConflict:
		return result, seckill.Errorf(seckill.CodeWrongState, "trade %q was recorded with another order, amount or currency", notice.TradeNo)
	}
	return result, nil
}

// Acknowledge returns the answer to a callback in the format of its provider.
// Status 0 leaves the answer to the caller.
func (d *Orders) Acknowledge(provider string, refusal error) payment.Acknowledgement {
	from := d.Providers[provider]
	if from == nil {
		return payment.Acknowledgement{}
	}
	return from.Acknowledge(refusal)
}

// CancelOwn cancels a buyer's own order.
func (d *Orders) CancelOwn(ctx context.Context, buyer string, no seckill.OrderNo) (seckill.Order, error) {
	o, err := d.Find(ctx, buyer, no)
	if err != nil {
		return o, err
	}
	if o.Status == seckill.OrderQueued {
		return o, tooEarly("cancel")
	}
	return d.Cancel(ctx, no, seckill.ReasonByBuyer, store.Actor{Name: "buyer"})
}

// Cancel cancels a pending order. A queued order is wrong_state, and one that
// may be queued is busy.
func (d *Orders) Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor store.Actor) (seckill.Order, error) {
	o, err := d.move(ctx, no, "cancel", func() (seckill.Order, error) { return d.Store.Cancel(ctx, no, reason, actor) })
	if err == nil {
		d.UnitsBack(&o)
	}
	return o, err
}

// Refund refunds a paid order: its unit and its money return. An order that is
// not in the store gives the same errors as Cancel.
func (d *Orders) Refund(ctx context.Context, no seckill.OrderNo, actor store.Actor) (seckill.Order, error) {
	o, err := d.move(ctx, no, "refund", func() (seckill.Order, error) { return d.Store.Refund(ctx, no, actor) })
	if err == nil {
		d.UnitsBack(&o)
		d.Duties.Wake(background.DutyRefund)
	}
	return o, err
}

// RetryRefund starts the tries of a failed refund again, from now.
func (d *Orders) RetryRefund(ctx context.Context, id string, actor store.Actor) (store.Payment, error) {
	refund, err := d.Store.RetryRefund(ctx, id, actor)
	if err == nil {
		d.Duties.Wake(background.DutyRefund)
	}
	return refund, err
}

// Retry starts the retry ladder of a letter again, from now.
func (d *Orders) Retry(ctx context.Context, id int64, actor store.Actor) (store.Letter, error) {
	return d.Store.RetryLetter(ctx, id, actor)
}

// Discard gives up a letter: its order fails and its unit returns.
func (d *Orders) Discard(ctx context.Context, id int64, actor store.Actor) (seckill.Order, error) {
	o, err := d.Store.DiscardLetter(ctx, id, actor)
	if err == nil {
		d.UnitsBack(&o)
	}
	var told *seckill.Error
	if err != nil && !errors.As(err, &told) && !errors.Is(err, store.ErrUnavailable) {
		// The cause that prevents the claim from being written may prevent its
		// failure too.
		err = seckill.Errorf(seckill.CodeBusy, "the order cannot be written as failed either: %w", err)
	}
	return o, err
}
