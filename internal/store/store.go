// Package store is the port to the database, which is the authoritative record of products,
// orders, money and their history.
//
// store.go has the port itself, products, orders and releases. direct.go and takeover.go let
// the store sell without a ledger. letter.go has claims that wait for a retry, money.go
// payments and stock changes, delivery.go events sent to sinks, record.go reconciliation, audit
// and leases.
package store

import (
	"context"
	"errors"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// Store is the port. Every adapter must pass the suite storetest.
//
// Unless a method says otherwise, every change is one transaction: all of it happens, or
// nothing. In the same transaction
//   - each change of an order or a sale writes its event,
//   - each change of a product's stock writes its stock-log row: seq has no gap, and
//     before_stock is the previous after_stock (I6),
//   - each operator change writes its audit row.
//
// Times are the store's clock, in UTC, to the millisecond.
//
// Errors:
//   - a *seckill.Error if the caller is wrong (not_found, wrong_state, bad_request),
//   - ErrUnavailable if the store cannot be reached or written; the outcome is unknown then,
//   - ErrConflict if the optimistic lock was lost three times,
//   - ErrShort, only from Confirm.
//
// Any other error means that the data is damaged.
//
// Every list is limited by a number that the caller gives. ReleasesDue and LettersDue serve all
// products. They log a row that cannot be read, and leave it out.
//
// Methods are safe for concurrent use and return within their context's deadline.
type Store interface {
	Products
	Orders
	DirectSales
	Takeovers
	Releases
	Letters
	Payments
	StockChanges
	Reconciliations
	Feed
	Deliveries
	Leases

	// Now returns the time of the store's clock.
	Now(ctx context.Context) (time.Time, error)
	// Ping reports whether the store can be read and written.
	Ping(ctx context.Context) error
	// Migrate brings the tables up to date. Several processes may call it at once.
	Migrate(ctx context.Context) error
	Close() error
}

var (
	// ErrUnavailable means that the store is down, full or too slow.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrConflict means that other transactions changed the product at each of our attempts.
	ErrConflict = errors.New("store: optimistic lock lost")
	// ErrShort means that the store has less stock than the ledger has sold, so the ledger must
	// be recovered. Nothing was changed.
	ErrShort = errors.New("store has less stock than was promised")
	// ErrEpoch means that the product's epoch is not the one that the caller gave. Nothing was
	// changed.
	ErrEpoch = errors.New("store: epoch has moved on")
	// ErrTerm means that another sender has taken the sink, or that an operator has moved its
	// cursor back. Nothing was changed.
	ErrTerm = errors.New("store: the sink is in another term")
	// ErrLocked means that another session, for example one that was left open, holds a row for
	// longer than a transaction waits. It comes with ErrUnavailable, but other rows may be
	// free. Nothing was changed.
	ErrLocked = errors.New("store: a row is locked by another session")
)

// EndsAll reports whether an error comes from the store, the product or the context. Such an
// error would meet every other claim too.
func EndsAll(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrEpoch) || seckill.CodeNotFound.In(err))
}

// ByHalves calls do with all items. If do fails, ByHalves calls it for each half, down to
// single items, so that one bad item does not block the others. It continues after an error
// unless endsAll reports true for it.
func ByHalves[T any](items []T, endsAll func(error) bool, do func([]T) error) error {
	err := do(items)
	if err == nil || len(items) < 2 || endsAll(err) {
		return err
	}
	half := len(items) / 2
	first := ByHalves(items[:half], endsAll, do)
	if first != nil && endsAll(first) {
		return first
	}
	return errors.Join(first, ByHalves(items[half:], endsAll, do))
}

// MaxEpoch is the highest epoch. Ledgers count in float64, which holds every integer up to it
// exactly. It also fits the store's columns.
const MaxEpoch = 1<<53 - 1

// Actor is the person or part that makes an operator change, and the reason. Both go to the
// audit.
type Actor struct {
	Name   string // such as "operator", "system", "cli"
	Reason string
}

// Products keeps the products.
type Products interface {
	// CreateProduct adds a product that has passed p.Check, with version 1, epoch 0, offered =
	// stock and seller = ledger. It writes sale.created, and the first stock-log row (type 3)
	// if stock > 0. An id that exists is wrong_state.
	//
	// With several shards the product gets a secret shard_key, which is never 0; with one shard
	// it is 0. A member of a limit group gets the key of the product whose group it joins.
	//
	// A product that joins the limit group of another
	//   - must have the same per_user_limit and shards (bad_request),
	//   - must be sold directly if and only if the other one is (bad_request): a ledger does
	//     not know direct orders, so it would sell units that the store then refuses,
	//   - must be a test product if and only if the other one is (bad_request),
	//   - must wait while a member of the group is being deleted (wrong_state).
	CreateProduct(ctx context.Context, p seckill.Product, actor Actor) (seckill.Product, error)

	// PatchProduct changes the fields that are set. After the first preheat only name, ref,
	// image_url, unlisted, price, starts_at and ends_at may change (wrong_state). The two times
	// may not change after sale.ended was written, because a sale ends once. The result must
	// pass Check.
	PatchProduct(ctx context.Context, id uint32, patch ProductPatch, actor Actor) (seckill.Product, error)

	Product(ctx context.Context, id uint32) (seckill.Product, error)
	// CurrentProducts lists by id the products that background duties look after:
	//   - those without sale.ended, or whose sale.ended was written less than CurrentFor ago,
	//   - those that the store has taken over,
	//   - test products,
	//   - all other members of their limit groups, whose orders count against the same limit.
	CurrentProducts(ctx context.Context) ([]seckill.Product, error)
	// Products lists products by id.
	Products(ctx context.Context, filter ProductFilter) ([]seckill.Product, error)

	// SetState pauses, resumes or ends a sale, and writes sale.paused, sale.resumed or
	// sale.ended. A Sell that is decided after SetState returned sees the new state. An ended
	// sale stays ended (wrong_state).
	//
	// If the sale is in that state already, only the audit is written, one line per instruction
	// ID. An instruction that the audit already has changes nothing, even if the state changed
	// since.
	SetState(ctx context.Context, id uint32, in seckill.Instruction) (seckill.Product, error)

	// OpenEpoch begins a new epoch that the ledger sells, if the product's epoch is still seen
	// (else ErrEpoch). It bumps epoch and version, sets Rebuilding and seller = ledger, and
	// calls mark with the content of the new ledger:
	//   - each live order (pending or paid) of OriginLedger, restamped with the new epoch,
	//   - the claim of each letter, as a queued order, if stock, limit and key allow; the
	//     letter is restamped too,
	//   - each dead order that has a key, whether ledger or store sold it, unchanged: its key
	//     stays taken (protocol 3).
	//
	// No order is handed over twice, and all are read from one snapshot of stock, marks and
	// keys. The ledger gets the whole stock, including the units of queued orders. An order
	// that names another shard than the home shard of its buyer is moved to the home shard. An
	// error of mark undoes everything.
	//
	// The new epoch is one above the higher of seen and floor. Floor is the epoch that a ledger
	// has and that the new one must exceed, or 0. If the result would exceed MaxEpoch:
	// wrong_state.
	OpenEpoch(ctx context.Context, id uint32, seen, floor uint64, actor Actor, mark func(seckill.Order) error) (seckill.Product, error)

	// BeginRebuild sets Rebuilding, if the product's epoch is the given one and its seller is
	// the ledger; else it changes nothing. A product that was taken over is rebuilt when it
	// returns to the ledger.
	BeginRebuild(ctx context.Context, id uint32, epoch uint64) error
	// EndRebuild clears Rebuilding, so that instances sell from the ledger again. It is
	// ErrEpoch, and changes nothing, if the product's epoch is another one, or if the store is
	// the seller of this or any other product of the limit group: the ledger cannot count the
	// store's orders.
	EndRebuild(ctx context.Context, id uint32, epoch uint64) error

	// Announce writes sale.started or sale.ended once per product, and reports whether this
	// call wrote it.
	//
	// Events of a sale carry seckill.SaleData. sale.created, sale.started and sale.ended count
	// the units of its orders; sale.ended has the stock as returned_units.
	Announce(ctx context.Context, id uint32, kind seckill.EventKind) (bool, error)

	// BeginDelete begins the deletion of a test product whose sale has ended, and returns the
	// product. From then on no other method finds it, and its id cannot be used again. A
	// repeated call returns the product without an audit line, until everything is deleted
	// (not_found).
	//
	// Errors:
	//   - not_test for a real product,
	//   - wrong_state while a sale of the limit group is not ended, while a refund needs care,
	//     or if other products have joined its limit group,
	//   - busy while the product is being rebuilt or taken over, or while a refund is due.
	BeginDelete(ctx context.Context, id uint32, actor Actor) (seckill.Product, error)
	// DeleteSome deletes some rows of a product whose deletion has begun, in one transaction of
	// bounded size. It begins with orders and their events, stock log, letters and payments,
	// and ends with all other rows except the audit. It returns how many orders it has deleted,
	// and whether everything is gone.
	//
	// The limit group shares buyer records, so the units of live orders are subtracted from
	// them. Money that arrives after BeginDelete, and its refund, stay.
	DeleteSome(ctx context.Context, id uint32) (orders int, done bool, err error)
	// Deleted reports whether a product was deleted or its deletion has begun. It is false for
	// an id that was never used.
	Deleted(ctx context.Context, id uint32) (bool, error)
}

// CurrentFor is how long a product is current after its sale.ended. It is an hour longer than
// the ledger of the product is looked after.
const CurrentFor = 25 * time.Hour

// ProductFilter narrows Products.
type ProductFilter struct {
	After uint32 // page: only ids above this one
	Limit int
}

// ProductPatch has the fields to change; nil means unchanged.
type ProductPatch struct {
	Name         *string
	Ref          *string
	PriceCents   *int64
	Currency     *string
	PerUserLimit *int
	StartsAt     *time.Time
	EndsAt       *time.Time
	ImageURL     *string
	Unlisted     *bool
}

// Orders keeps the orders.
type Orders interface {
	// Confirm turns claims of one product into orders. It is the worker's transaction:
	//   - classify each claim and deduct the stock,
	//   - write orders, stock log, buyer records and events,
	//   - park the claims of Park, and close the letters of confirmed claims,
	//   - raise the witness of each stream to the highest id given.
	//
	// The deduction compares the product's version, and re-reads it at most 3 times (then
	// ErrConflict).
	//
	// The outcome of a claim is the first that holds:
	//   - The order exists ► ConfirmReplay. If it is dead, its release is owed again, under the
	//     store's epoch.
	//   - The ledger is the seller, and the claim's epoch is below the product's ►
	//     ConfirmOldEpoch. Nothing is written for the claim: it must be adopted first.
	//   - Another order of the limit group has the buyer's key ► ConfirmDuplicate: a failed
	//     order row with reason "duplicate", release owed.
	//   - The buyer's live units + quantity > limit ► ConfirmOverLimit: a failed order row with
	//     reason "limit", release owed.
	//   - The store is the seller, open or not, and has too few units besides those that parked
	//     claims hold ► ConfirmSoldOut: a failed order row with reason "lost".
	//   - Otherwise ► ConfirmNew: pending, pay_before = the store's now + ExpireAfter.
	//
	// While the store is the seller no release is owed, because the ledger is rebuilt when it
	// becomes the seller again. ErrShort if the ledger is the seller and the stock does not
	// suffice for the new orders. ErrEpoch if a claim's epoch is above the product's. Each time
	// the last unit of the stock is sold, sale.sold_out is written.
	//
	// A claim has at most one letter. How Park treats a claim:
	//   - If its letter waits already, the letter stays as it is. If that letter has a lower
	//     epoch, the claim was adopted from it, and the letter starts anew.
	//   - If its order exists, it gets no letter. If that order is dead, its release is owed
	//     again.
	//   - While the store is the seller, the letter gets the product's epoch. It then reserves
	//     the claim's units, limit and key.
	Confirm(ctx context.Context, req ConfirmRequest) ([]ConfirmOutcome, error)

	// Fail writes failed order rows for claims whose adoption was refused, and closes their
	// letters. A claim that already has a row is left alone.
	//
	// The ledger holds nothing for such a claim, so no release is owed, with one exception. If
	// a letter waits, another worker may have had the claim adopted since, and the letter may
	// belong to that adoption. Then the release is owed under the store's epoch, unless the
	// order is live and sold by the ledger.
	//
	// If the reason is "duplicate", the row has no key: the key belongs to the other order,
	// which may reach Confirm later.
	Fail(ctx context.Context, items []Item, reason string) error

	Order(ctx context.Context, no seckill.OrderNo) (seckill.Order, error)
	// OrdersByNo reads many orders at once. Missing ones are absent.
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	// PendingUntil returns the latest pay_before of the pending orders of each product. A
	// product without any is absent. It may have to read all of them, so it must not be called
	// per request.
	PendingUntil(ctx context.Context, products []uint32) (map[uint32]time.Time, error)
	// SearchOrders lists orders, newest first.
	SearchOrders(ctx context.Context, filter OrderFilter) ([]seckill.Order, error)
	// Story lists everything that happened to an order, oldest first: events, payments,
	// letters, stock-log rows, and changes by operators.
	Story(ctx context.Context, no seckill.OrderNo) ([]StoryLine, error)

	// Cancel and Refund move the order if seckill.Order allows it, return its units to stock,
	// and subtract them from the buyer record. The release is owed to the ledger under the
	// product's epoch, but not while the store is the seller. Refund also writes
	// refund.required, and owes a refund of the payment that paid the order.
	//
	// sale.back_in_stock is written in the transaction that returns the first units after
	// sale.sold_out: by Cancel, Refund, Expire or a stock change. So there is one between two
	// sale.sold_out. None follows sale.ended, because nobody can buy the units then.
	Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor Actor) (seckill.Order, error)
	Refund(ctx context.Context, no seckill.OrderNo, actor Actor) (seckill.Order, error)

	// Expire cancels at most limit pending orders whose pay_before has passed, as Cancel would
	// with reason "expired". It returns them, also those cancelled before an error.
	//
	// It is one transaction per product. A product may be gone, or one of its rows unreadable:
	// it is logged, does not count against the limit, and does not block the others.
	Expire(ctx context.Context, limit int) ([]seckill.Order, error)
	// ExpireOrders is Expire for the given orders alone. It leaves orders that are not pending
	// or not due as they are, and ignores unknown numbers. A number may be given twice.
	ExpireOrders(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	// WarnExpiring writes order.expiring, once per order, for at most limit pending orders
	// whose pay_before is nearer than lead. It returns their number.
	WarnExpiring(ctx context.Context, lead time.Duration, limit int) (int, error)
}

// ConfirmRequest is one worker transaction for one product.
type ConfirmRequest struct {
	ProductID   uint32
	Items       []Item
	Park        []Parked
	Witness     []queue.ID // of the deliveries that this transaction confirms
	ExpireAfter time.Duration
	// Committing, unless nil, is called after all writes and before the commit. An error before
	// this call means that nothing was committed; an error after it leaves the outcome unknown.
	// It is called again if the transaction is run again. It must be brief, because the product
	// is locked.
	Committing func()
}

// Item is a claim to confirm, with the data of its entry. LetterID is not 0 if the claim comes
// from a letter.
type Item struct {
	Claim      seckill.Claim
	ProductID  uint32
	Group      uint32
	Shard      int
	Epoch      uint64
	At         time.Time
	PriceCents int64
	Currency   string
	Name       string
	Limit      int
	LetterID   int64
}

// Order returns the queued order of the claim.
func (i *Item) Order() seckill.Order {
	return seckill.Order{
		OrderNo: i.Claim.OrderNo, Buyer: i.Claim.Buyer, ProductID: i.ProductID, Group: i.Group,
		ProductName: i.Name, PriceCents: i.PriceCents, Currency: i.Currency, Quantity: i.Claim.Quantity,
		Ref: i.Claim.Ref, Key: i.Claim.Key, Status: seckill.OrderQueued, CreatedAt: i.At,
		Epoch: i.Epoch, Shard: i.Shard,
	}
}

// Items returns the claims of an entry as items.
func Items(e *seckill.Entry) []Item {
	items := make([]Item, len(e.Claims))
	for i, claim := range e.Claims {
		items[i] = Item{
			Claim: claim, ProductID: e.ProductID, Group: e.Group, Shard: e.Shard, Epoch: e.Epoch,
			At: e.At, PriceCents: e.PriceCents, Currency: e.Currency, Name: e.Name, Limit: e.Limit,
		}
	}
	return items
}

// Parked is a claim to set aside as a letter, for a later retry.
type Parked struct {
	Item   Item
	Reason string
	Delay  time.Duration // until the next retry, by the store's clock
}

// ConfirmOutcome is the result of Confirm for one item.
type ConfirmOutcome uint8

// The outcomes of Confirm.
const (
	ConfirmNew ConfirmOutcome = iota + 1
	ConfirmReplay
	ConfirmOldEpoch
	ConfirmDuplicate
	ConfirmOverLimit
	ConfirmSoldOut
)

// FailedFor returns the reason of the failed order that was written; "" if none was.
func (o ConfirmOutcome) FailedFor() string {
	switch o {
	case ConfirmDuplicate:
		return seckill.ReasonDuplicate
	case ConfirmOverLimit:
		return seckill.ReasonLimit
	case ConfirmSoldOut:
		return seckill.ReasonLost
	}
	return ""
}

// OrderFilter narrows SearchOrders; zero fields do not narrow.
type OrderFilter struct {
	Buyer     string
	ProductID uint32
	Status    *seckill.OrderStatus
	Ref       string
	Before    seckill.OrderNo // page: only numbers below this one
	Limit     int
}

// StoryLine is one event in the history of an order.
type StoryLine struct {
	At   time.Time
	Kind string // "event", "payment", "letter", "stock", "operator"
	What string // such as "order.paid", "refund done", "stock 10 -> 9", "order.cancel by alice: asked"
}

// Part is a shard of a product, in any epoch.
type Part struct {
	ProductID uint32
	Shard     int
}

// Releases keeps the releases that the store owes to the ledger: units of dead orders that the
// ledger must make available again.
type Releases interface {
	// ReleasesDue lists at most limit owed releases, oldest first, without those of the
	// excepted parts. The caller excepts a shard that cannot take its releases, so that it does
	// not block the others.
	ReleasesDue(ctx context.Context, limit int, except ...Part) ([]Release, error)
	// SettleReleases settles releases as they were listed. It settles a release only if it is
	// still owed under the same epoch, and was not owed again since: the ledger may have made a
	// newer mark for the order after it released the listed one.
	SettleReleases(ctx context.Context, done []Release) error
	// Witness returns the highest confirmed id of each stream.
	Witness(ctx context.Context) ([]queue.ID, error)
	// WitnessLost forgets witnesses whose entries the queue has lost, and reports whether there
	// was one. Each is forgotten only if it is still exactly that one. So if several workers
	// notice one loss, one of them gets true. A witness that stayed would look like a loss
	// forever, because the stream now counts from below it.
	//
	// In the same transaction all current products that were preheated and that their ledger
	// sells are due for recovery. Kept become the new witnesses: the ids that the older
	// queue still has of these streams. Without them the store would look like an older copy
	// than the queue.
	WitnessLost(ctx context.Context, lost, kept []queue.ID) (bool, error)
}

// Release is an owed release, stamped with the store's epoch at the change.
type Release struct {
	OrderNo   seckill.OrderNo
	Buyer     string
	ProductID uint32
	Group     uint32
	Shard     int
	Epoch     uint64
	// Since is when it was last owed, by the store's clock. If it is owed again before it is
	// settled, Since changes, even within one epoch.
	Since time.Time
}
