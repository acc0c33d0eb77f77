package store

import (
	"context"
	"time"

	"seckill/internal/payment"
)

// Payments keeps money.
type Payments interface {
	// RecordPayment writes authentic money, once per (provider, trade number).
	// One exact payment (amount and currency) of a pending order pays it. All
	// other money (late, doubled, wrong amount, unknown order) is recorded and
	// its refund is owed, which writes refund.required. A notice that was recorded before changes nothing; one
	// that says another order, amount or currency of a recorded trade is
	// PaymentConflict, and changes nothing either.
	RecordPayment(ctx context.Context, notice payment.Notice) (PaymentResult, error)
	// RefundsDue lists at most limit refunds that the provider has to make.
	RefundsDue(ctx context.Context, limit int) ([]Payment, error)
	// RefundDone settles a refund and writes refund.settled, once. Both events
	// carry seckill.RefundData and the order's number, if the money names one that
	// can be a number of ours. RefundFailed notes an attempt and makes it
	// due again after delay, or needing care if delay is negative.
	RefundDone(ctx context.Context, id string) error
	RefundFailed(ctx context.Context, id, reason string, delay time.Duration) error
	// RetryRefund makes a refund that needs care due now, with fresh attempts. Any
	// other is wrong_state.
	RetryRefund(ctx context.Context, id string, actor Actor) (Payment, error)
	// Payments lists newest first.
	Payments(ctx context.Context, filter PaymentFilter) ([]Payment, error)
}

// PaymentResult is what money did.
type PaymentResult uint8

// The results of RecordPayment.
const (
	PaymentPaid     PaymentResult = iota + 1 // it paid the order
	PaymentExcess                            // it is to be refunded
	PaymentRepeated                          // it was recorded before
	PaymentConflict                          // its trade was recorded otherwise
)

// PaymentResults lists all of them.
var PaymentResults = []PaymentResult{PaymentPaid, PaymentExcess, PaymentRepeated, PaymentConflict}

func (r PaymentResult) String() string {
	switch r {
	case PaymentPaid:
		return "paid"
	case PaymentExcess:
		return "excess"
	case PaymentRepeated:
		return "repeated"
	case PaymentConflict:
		return "conflict"
	}
	return "unknown"
}

// Payment is one movement of money.
type Payment struct {
	ID          string
	Type        string // "payment" or "refund"
	OrderNo     string // as the provider said it
	Provider    string
	TradeNo     string
	AmountCents int64
	Currency    string
	Status      string // payment: "applied", "excess"; refund: "due", "done", "failed"
	Reason      string // of a refund: "late", "doubled", "wrong_amount", "unknown_order", "operator"
	PaymentID   string // of a refund: the payment that it returns
	Attempts    int
	CreatedAt   time.Time
	DoneAt      time.Time
}

// PaymentFilter narrows Payments; zero fields do not narrow.
type PaymentFilter struct {
	OrderNo   string
	ProductID uint32
	OfNone    bool // only money whose order number names no product; ProductID is 0
	Type      string
	NoTests   bool   // leaves out money of test products
	Before    string // page: only what is listed behind the payment with this id; unknown is bad_request
	Limit     int
}

// StockChanges keeps operator changes of stock until store and ledger agree.
type StockChanges interface {
	// BeginStockChange records a change under its id; repeated, it returns what
	// was recorded. Up: stock and offered grow at once, and the ledger is owed.
	// Down: only the intention is written (bad_request when delta exceeds the
	// stock that no letter holds), stamped with the epoch. A product that was never
	// preheated, or that the store sells, owes the ledger nothing: the change is
	// done at once, up or down. During a takeover promises are on their way to the
	// store: a change down stays open until the store sells.
	BeginStockChange(ctx context.Context, change StockChange) (StockChange, error)
	// StockChangesDue lists at most limit changes that are not done, oldest first,
	// without those of the excepted products.
	StockChangesDue(ctx context.Context, limit int, except ...uint32) ([]StockChange, error)
	// FinishStockChange settles one by the verdict of the ledger of an epoch. A
	// down change heeds that of the epoch with which it is stamped alone (else
	// ErrEpoch): another may have been told since, and have decided otherwise. It
	// takes its units from stock and offered here, only if that is the product's
	// epoch still (else ErrEpoch too); refused ends it without effect. While the
	// store is the seller it decides itself: refused if letters hold the units, and
	// busy during a takeover. An up
	// change is settled by any. What is settled stays as it is.
	FinishStockChange(ctx context.Context, id string, epoch uint64, refused bool) (StockChange, error)
	// RestampStockChange moves a down change that is not done to the product's
	// present epoch, never to a lower one than it has.
	RestampStockChange(ctx context.Context, id string) (StockChange, error)
}

// StockChange is an operator change of stock.
type StockChange struct {
	ID        string
	ProductID uint32
	Delta     int64
	Epoch     uint64
	Status    ChangeStatus
	Actor     Actor
	CreatedAt time.Time
}

// ChangeStatus is how far a stock change has come.
type ChangeStatus string

// The statuses of a stock change.
const (
	ChangeOpen    ChangeStatus = "open"    // the ledger is owed
	ChangeDone    ChangeStatus = "done"    // store and ledger agree
	ChangeRefused ChangeStatus = "refused" // too few units were free; nothing changed
)
