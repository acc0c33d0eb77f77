package store

import (
	"context"
	"time"

	"seckill/internal/payment"
)

// Payments keeps payments and refunds.
type Payments interface {
	// RecordPayment writes authentic money, once per (provider, trade number). One exact
	// payment (amount and currency) pays a pending order. All other money (late, doubled, wrong
	// amount, unknown order) is recorded, its refund is owed, and refund.required is written.
	//
	// A notice that was recorded before changes nothing. If it names another order, amount or
	// currency than the recorded trade, the result is PaymentConflict, and nothing changes
	// either.
	RecordPayment(ctx context.Context, notice payment.Notice) (PaymentResult, error)
	// RefundsDue lists at most limit refunds that are due at the provider.
	RefundsDue(ctx context.Context, limit int) ([]Payment, error)
	// RefundDone settles a refund and writes refund.settled, once. RefundFailed records an
	// attempt: the refund is due again after delay, or needs care if delay is negative.
	//
	// Both events carry seckill.RefundData. They carry the order number only if the money names
	// a number that our engine could have made.
	RefundDone(ctx context.Context, id string) error
	RefundFailed(ctx context.Context, id, reason string, delay time.Duration) error
	// RetryRefund makes a refund that needs care due now, and its attempts start anew. Any
	// other refund is wrong_state.
	RetryRefund(ctx context.Context, id string, actor Actor) (Payment, error)
	// Payments lists payments and refunds, newest first.
	Payments(ctx context.Context, filter PaymentFilter) ([]Payment, error)
}

// PaymentResult is the result of RecordPayment.
type PaymentResult uint8

// The results of RecordPayment.
const (
	PaymentPaid     PaymentResult = iota + 1 // it paid the order
	PaymentExcess                            // its refund is owed
	PaymentRepeated                          // it was recorded before
	PaymentConflict                          // its trade was recorded with other data
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

// Payment is one payment or refund.
type Payment struct {
	ID          string
	Type        string // "payment" or "refund"
	OrderNo     string // as the provider gave it
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
	OfNone    bool // only money whose order number names no product; ProductID must be 0
	Type      string
	NoTests   bool   // leaves out money of test products
	Before    string // page: only rows that follow the payment with this id; an unknown id is bad_request
	Limit     int
}

// StockChanges keeps operator changes of stock until store and ledger agree.
type StockChanges interface {
	// BeginStockChange records a change under its id. A repeated call returns the recorded
	// change.
	//   - Up: stock and offered grow at once. The change is owed to the ledger.
	//   - Down: only the intention is written, stamped with the epoch. It is bad_request if
	//     delta exceeds the stock that no letter reserves.
	//
	// If the product was never preheated, or the store sells it, the ledger is owed nothing:
	// the change is done at once, up or down. During a takeover orders are still on their way
	// to the store, so a change down stays open until the store sells.
	BeginStockChange(ctx context.Context, change StockChange) (StockChange, error)
	// StockChangesDue lists at most limit changes that are not done, oldest first, without
	// those of the excepted products.
	StockChangesDue(ctx context.Context, limit int, except ...uint32) ([]StockChange, error)
	// FinishStockChange settles a change by the decision that the ledger made in the given
	// epoch. A settled change stays as it is.
	//   - Up: the decision of any epoch settles it.
	//   - Down: only the decision of the epoch in its stamp counts (else ErrEpoch), because a
	//     ledger of another epoch may have decided otherwise. The units leave stock and offered
	//     only if that epoch is still the product's (else ErrEpoch). If refused, the change
	//     ends without effect.
	//   - While the store is the seller, the store decides: refused if letters reserve the
	//     units, busy during a takeover.
	FinishStockChange(ctx context.Context, id string, epoch uint64, refused bool) (StockChange, error)
	// RestampStockChange moves a down change that is not done to the product's present epoch,
	// never to a lower one.
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

// ChangeStatus is the progress of a stock change.
type ChangeStatus string

// The statuses of a stock change.
const (
	ChangeOpen    ChangeStatus = "open"    // owed to the ledger
	ChangeDone    ChangeStatus = "done"    // store and ledger agree
	ChangeRefused ChangeStatus = "refused" // too few units were free; nothing changed
)
