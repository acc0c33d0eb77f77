// Package store is the port of stage ⑧: the truth about products, orders,
// money and their history.
package store

import (
	"context"
	"errors"
	"time"

	"seckill"
	"seckill/internal/queue"
)

// Store is the port. An adapter is done when it passes storetest.
//
// Every method that changes something is one transaction, unless it says
// otherwise: it happened whole, or not at all. Every change of an order or a sale writes its event in that
// transaction; every change of a product's stock writes its stock-log row,
// whose seq has no gap and whose before_stock is the previous after_stock
// (I6). Operator changes write their audit row in it too. Times are the
// store's clock, in UTC, to the millisecond.
//
// Errors: a *seckill.Error for what the caller did wrong (not_found,
// wrong_state, bad_request); ErrUnavailable when the store cannot be reached
// or written, after which the outcome is unknown; ErrConflict when an
// optimistic lock was lost three times; ErrShort from Confirm. Anything else
// is an error of the data. Reads page by a limit that the caller names.
// ReleasesDue and LettersDue, which serve all products, leave out a row that
// cannot be read and log it.
//
// Methods are safe for concurrent use and return within their context's
// deadline.
type Store interface {
	Products
	Orders
	Counter
	Takeovers
	Releases
	Letters
	Payments
	StockChanges
	Reconciliations
	Feed
	Deliveries
	Leases

	// Now is the store's clock.
	Now(ctx context.Context) (time.Time, error)
	// Ping reports whether the store can be read and written.
	Ping(ctx context.Context) error
	// Migrate brings the tables up to date. It is safe to call from several
	// processes at once.
	Migrate(ctx context.Context) error
	Close() error
}

var (
	// ErrUnavailable says that the store is down, full or out of time.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrConflict says that others changed the product each time we tried.
	ErrConflict = errors.New("store: optimistic lock lost")
	// ErrShort says that the store has less stock than the ledger promised:
	// the ledger must be recovered. Nothing was changed.
	ErrShort = errors.New("store has less stock than was promised")
	// ErrEpoch says that the epoch is no longer the one the caller saw.
	// Nothing was changed.
	ErrEpoch = errors.New("store: epoch has moved on")
	// ErrTerm says that another sender has taken the sink, or that an operator set
	// its cursor back. Nothing was changed.
	ErrTerm = errors.New("store: the sink is in another term")
	// ErrLocked says that somebody else holds a row for longer than a transaction
	// waits, such as a session that was left open. It comes with ErrUnavailable,
	// and says that other rows may be free. Nothing was changed.
	ErrLocked = errors.New("store: a row is locked by another session")
)

// EndsAll reports whether an error is of the store, the product or the context, so
// that no other claim fares better.
func EndsAll(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrEpoch) || seckill.CodeNotFound.In(err))
}

// ByHalves does something with items. If that fails with several of them, it does
// so with each half, so that one that is bad holds up no other. It goes on past
// errors, and ends with one that ends all.
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

// MaxEpoch is the highest epoch. Ledgers count in float64, which tells every
// number up to it from the next; it fits the store's columns.
const MaxEpoch = 1<<53 - 1

// Actor is who made an operator change, and why; it goes to the audit.
type Actor struct {
	Name   string // such as "operator", "system", "cli"
	Reason string
}

// Products keeps what is on sale.
type Products interface {
	// CreateProduct adds a checked product (p.Check): version 1, epoch 0,
	// offered = stock, seller = ledger, and the first stock-log row
	// (type 3) if stock > 0, and writes sale.created. An id that exists is wrong_state. A product that
	// joins another's limit group must have that product's per_user_limit and
	// shards, and be sold directly if and only if that one is (bad_request): a
	// ledger knows nothing of direct orders, and would promise what the store
	// then has to refuse. Test products share a limit with test products only
	// (bad_request). With several shards the product gets a secret shard_key
	// that is never 0; with one it is 0. A member of a limit group gets the key of
	// the product whose group it joins. While another member is being deleted, none
	// joins (wrong_state).
	CreateProduct(ctx context.Context, p seckill.Product, actor Actor) (seckill.Product, error)

	// PatchProduct changes the fields that are set. After the first preheat
	// only name, ref, image_url, unlisted, price, starts_at and ends_at may change
	// (wrong_state), and the two times no longer once sale.ended was written: a
	// sale ends once. The result must pass Check.
	PatchProduct(ctx context.Context, id uint32, patch ProductPatch, actor Actor) (seckill.Product, error)

	Product(ctx context.Context, id uint32) (seckill.Product, error)
	// CurrentProducts reads, by id, the products that are looked after: those whose
	// sale.ended was not written, or was less than CurrentFor ago, those that the
	// store has taken over, test products, and all others of their limit groups, whose orders count
	// against the same limit.
	CurrentProducts(ctx context.Context) ([]seckill.Product, error)
	// Products lists by id.
	Products(ctx context.Context, filter ProductFilter) ([]seckill.Product, error)

	// SetState pauses, resumes or ends a sale, and writes sale.paused,
	// sale.resumed or sale.ended. A Sell that is decided after it returned meets the new state. An ended sale stays ended (wrong_state); the same state again
	// changes nothing, but the audit has a line of each instruction with an ID. An
	// instruction that the audit has already changes nothing, whatever came after it.
	SetState(ctx context.Context, id uint32, in seckill.Instruction) (seckill.Product, error)

	// OpenEpoch bumps epoch and version if the epoch is still seen (else
	// ErrEpoch), restamps live orders (pending and paid) of OriginLedger with the
	// new epoch, sets Rebuilding and seller = ledger, and hands each of them to mark; then the claim
	// of each letter, as a queued order, if stock, limit and key allow, and
	// restamps that letter; then each dead order of the product that has a key,
	// whoever sold it, as it is: its key stays its own (protocol 3). It hands over
	// none twice: a snapshot of stock, marks and keys. The whole stock is the
	// ledger's, the units of queued orders among it. An
	// error of mark undoes all. Orders that name another shard than their buyer's
	// home are moved to it.
	//
	// The new epoch is the one after the higher of seen and floor, which is the
	// epoch that a ledger has and that must be gone above, or 0. Beyond MaxEpoch
	// there is none: wrong_state.
	OpenEpoch(ctx context.Context, id uint32, seen, floor uint64, actor Actor, mark func(seckill.Order) error) (seckill.Product, error)

	// BeginRebuild marks the product as being rebuilt, if its epoch is still the
	// given one and its seller the ledger; else it changes nothing. A product that
	// was taken over is rebuilt by its return.
	BeginRebuild(ctx context.Context, id uint32, epoch uint64) error
	// EndRebuild takes the mark back: instances sell from the ledger again. It is
	// ErrEpoch, and changes nothing, if the product's epoch is another one or its
	// seller the store. It is ErrEpoch too while the store is the seller of another
	// product of the limit group, whose orders the ledger cannot count.
	EndRebuild(ctx context.Context, id uint32, epoch uint64) error

	// Announce writes sale.started or sale.ended once per product, and reports
	// whether this call did.
	//
	// Events of a sale carry seckill.SaleData. sale.created, sale.started and
	// sale.ended count the units of its orders; sale.ended has the stock as
	// returned_units.
	Announce(ctx context.Context, id uint32, kind seckill.EventKind) (bool, error)

	// BeginDelete begins the deletion of a test product that was ended: from then
	// on no other method finds it, and its id is used up. It returns the product;
	// repeated, it does so without an audit line, until all is deleted (not_found).
	//
	// A real product is not_test. It is wrong_state while its sale, or that of
	// another product of its limit group, is not ended, while a refund needs care, or
	// if other products have joined its limit group; and busy while the product is
	// marked as being rebuilt, is being taken over, or a refund is due.
	BeginDelete(ctx context.Context, id uint32, actor Actor) (seckill.Product, error)
	// DeleteSome deletes, in one transaction of bounded size, rows of a product
	// whose deletion has begun: orders with their events, stock log, letters and
	// payments, and then what else is of the product, all but the audit. It returns how many
	// orders it has deleted, and whether everything is gone. Units of live orders
	// are taken off the buyer records, which a limit group shares. Money that comes
	// after BeginDelete, and its refund, stay.
	DeleteSome(ctx context.Context, id uint32) (orders int, done bool, err error)
	// Deleted reports whether a product was deleted, or its deletion has begun. It is
	// false for an id that no product has had.
	Deleted(ctx context.Context, id uint32) (bool, error)
}

// CurrentFor is how long a product is current after its sale.ended: an hour more
// than its ledger is looked after.
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

// Orders keeps what was bought.
type Orders interface {
	// Confirm makes orders of claims of one product: the worker's transaction.
	// It reads the product, classifies each claim, deducts by compare-and-set of
	// the version (at most 3 re-reads, then ErrConflict), writes orders, stock
	// log, buyer records and events by multi-row statements, parks what is to be
	// parked, closes the letters that the claims came from, and raises the
	// witness of each stream to the highest id given.
	//
	// A claim has one letter. One to be parked whose letter waits leaves it as it
	// is, unless that is of a lower epoch: then the claim was adopted from it, and
	// it begins anew. One whose order exists gets none; if that order is dead, its
	// release is owed again. While the store is the seller, the letter is of the
	// product's epoch: it holds the claim's units, limit and key against others.
	//
	//   - the order exists ► ConfirmReplay; if it is dead, its release is owed
	//     again, under the store's epoch
	//   - the claim's epoch is below the product's, whose seller is the ledger ►
	//     ConfirmOldEpoch, nothing written for it: it has to be adopted
	//   - the buyer's (group, key) belongs to another order ► ConfirmDuplicate:
	//     a failed order row with reason "duplicate", release owed
	//   - the buyer's live units + quantity > limit ► ConfirmOverLimit: a
	//     failed order row with reason "limit", release owed
	//   - the seller is the store, open or not, and the units are gone that parked
	//     claims do not hold ► ConfirmSoldOut: a failed order row with reason "lost"
	//   - else ► ConfirmNew: pending, pay_before = the store's now + ExpireAfter
	//
	// While the store is the seller no release is owed: the ledger is rebuilt when
	// it is the seller again. If the ledger is the seller and the stock does not
	// suffice for the new ones: ErrShort. A claim whose epoch is above the product's: ErrEpoch. The
	// last unit of the whole stock writes sale.sold_out, each time that it goes.
	Confirm(ctx context.Context, req ConfirmRequest) ([]ConfirmOutcome, error)

	// Fail writes failed order rows for claims that were refused adoption. A
	// claim that has a row already is left alone. The ledger holds nothing of
	// them, so no release is owed, unless a letter waits: somebody else may have
	// had the claim adopted since, and the letter be of that. Letters are closed,
	// and the releases of their orders owed under the store's epoch; not of
	// orders that are live and the ledger's. What fails as a duplicate leaves its
	// key to the other order, which may come to Confirm later.
	Fail(ctx context.Context, items []Item, reason string) error

	Order(ctx context.Context, no seckill.OrderNo) (seckill.Order, error)
	// OrdersByNo reads many at once; missing ones are absent.
	OrdersByNo(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	// PendingUntil is the latest pay_before of the pending orders of each product;
	// a product without any is absent. It may have to read all of them: not to be
	// asked for each request.
	PendingUntil(ctx context.Context, products []uint32) (map[uint32]time.Time, error)
	// SearchOrders lists newest first.
	SearchOrders(ctx context.Context, filter OrderFilter) ([]seckill.Order, error)
	// Story is all that happened to an order, oldest first: events, payments,
	// letters, stock-log rows, and the changes of operators.
	Story(ctx context.Context, no seckill.OrderNo) ([]StoryLine, error)

	// Cancel and Refund move the order (seckill.Order decides whether), return
	// its units to stock, take them off the buyer record, and owe the release to
	// the ledger, stamped with the product's epoch. The ledger is owed nothing
	// while the store is the seller. Refund also owes the money: a
	// refund of the payment that paid the order, and writes refund.required.
	//
	// The first units that return to stock after sale.sold_out write
	// sale.back_in_stock, in the transaction that returns them: by Cancel, Refund,
	// Expire or a stock change. So between two sale.sold_out there is one of them.
	// None follows sale.ended, after which nobody can buy the units.
	Cancel(ctx context.Context, no seckill.OrderNo, reason string, actor Actor) (seckill.Order, error)
	Refund(ctx context.Context, no seckill.OrderNo, actor Actor) (seckill.Order, error)

	// Expire cancels at most limit pending orders whose pay_before has passed,
	// as Cancel would with reason "expired", and returns them, also those from
	// before an error. It is one transaction per product: one whose orders cannot
	// be cancelled, because it is gone or a row cannot be read, is logged, takes no
	// place of the limit, and holds up no other.
	Expire(ctx context.Context, limit int) ([]seckill.Order, error)
	// ExpireOrders is Expire for the given orders alone: it cancels those that are
	// pending and whose pay_before has passed. It leaves all others as they are,
	// and numbers that it does not know. A number may be given twice.
	ExpireOrders(ctx context.Context, nos []seckill.OrderNo) ([]seckill.Order, error)
	// WarnExpiring writes order.expiring, once per order, for at most limit
	// pending orders whose pay_before is nearer than lead; it returns how many.
	WarnExpiring(ctx context.Context, lead time.Duration, limit int) (int, error)
}

// ConfirmRequest is one worker transaction for one product.
type ConfirmRequest struct {
	ProductID   uint32
	Items       []Item
	Park        []Parked
	Witness     []queue.ID // of the deliveries that this transaction settles
	ExpireAfter time.Duration
	// Committing, unless nil, is called when all is written and nothing
	// committed: until then it is sure that nothing was, whatever error follows,
	// and from then on it is not. It is called again if the transaction is run
	// again, and must be brief: the product is locked.
	Committing func()
}

// Item is a claim to confirm, with what its entry said of it. LetterID is not
// 0 when it comes from the retry ladder.
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

// Order is the queued order that the claim stands for.
func (i *Item) Order() seckill.Order {
	return seckill.Order{
		OrderNo: i.Claim.OrderNo, Buyer: i.Claim.Buyer, ProductID: i.ProductID, Group: i.Group,
		ProductName: i.Name, PriceCents: i.PriceCents, Currency: i.Currency, Quantity: i.Claim.Quantity,
		Ref: i.Claim.Ref, Key: i.Claim.Key, Status: seckill.OrderQueued, CreatedAt: i.At,
		Epoch: i.Epoch, Shard: i.Shard,
	}
}

// Items spreads an entry into its items.
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

// Parked is a claim to set aside on the retry ladder.
type Parked struct {
	Item   Item
	Reason string
	Delay  time.Duration // until the next try, by the store's clock
}

// ConfirmOutcome is what became of one item.
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

// FailedFor is the reason of the failed order that was written; "" if none was.
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

// StoryLine is one thing that happened to an order.
type StoryLine struct {
	At   time.Time
	Kind string // "event", "payment", "letter", "stock", "operator"
	What string // such as "order.paid", "refund done", "stock 10 -> 9", "order.cancel by alice: asked"
}

// Part is a shard of a product, of whatever epoch.
type Part struct {
	ProductID uint32
	Shard     int
}

// Releases is what the store owes to the ledger.
type Releases interface {
	// ReleasesDue lists at most limit owed releases, oldest first, without those
	// of the excepted parts: one that cannot take its own must not hold up the
	// others.
	ReleasesDue(ctx context.Context, limit int, except ...Part) ([]Release, error)
	// ReleasesHeard settles them as they were listed: each only if it is still
	// owed under that epoch, and was not owed again since. The ledger may have
	// been told before the mark was made that is to be released now.
	ReleasesHeard(ctx context.Context, done []Release) error
	// Witness is the highest confirmed id of each stream.
	Witness(ctx context.Context) ([]queue.ID, error)
	// WitnessLost forgets witnesses that the queue has lost, each if it is still
	// exactly that one: a stream that begins anew counts from below, and would be
	// called lost for ever. If there was one, every current product that was
	// preheated and that its ledger sells is marked for recovery in the same transaction, and kept are the
	// witnesses from then on: what the queue, set back, has of these streams. A
	// store that is below it for a moment would pass for an older copy. It reports
	// whether there was: of those who meet a loss, one notices it.
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
	// Since is when it was owed, by the store's clock. Owed again before it was
	// heard, it is owed since later, under the same epoch too.
	Since time.Time
}
