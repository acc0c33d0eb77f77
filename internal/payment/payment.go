// Package payment is the port of stage ⑨: a provider takes and returns money.
// What money means for an order is decided in the store (I8).
package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"seckill"
)

// Provider is the port. An adapter is done when it passes paymenttest.
type Provider interface {
	// Name is the provider's name on the wire and in the store.
	Name() string

	// Begin makes the address at which the buyer pays exactly the order's
	// amount. It may be called any number of times for one order. When the buyer
	// is done there, or gives up, the provider leads them back to the address
	// back; "" is for a provider to choose.
	Begin(ctx context.Context, order *seckill.Order, back string) (Session, error)

	// Notice reads a callback. It returns ErrNotAuthentic unless the provider
	// signed exactly these bytes, and ErrMalformed for a signed body that makes
	// no sense. It has no side effect, so a callback can come N times.
	Notice(ctx context.Context, header http.Header, body []byte) (Notice, error)

	// Acknowledge returns the answer to a callback in the provider's own
	// protocol. A nil refusal means that the money is recorded: the answer has a
	// 2xx status, and the provider sends the callback no more. Any other refusal,
	// which seckill.CodeOf tells apart, must not read as an acknowledgement. The
	// zero Acknowledgement has the shop API send its problem document.
	Acknowledge(refusal error) Acknowledgement

	// Refund returns money of one trade. It is idempotent by Refund.ID: the
	// money goes back once, whatever the number of calls. A nil error means
	// that the provider has accepted it for good.
	Refund(ctx context.Context, refund Refund) error
}

// ErrNotAuthentic says that the provider did not sign the callback.
var ErrNotAuthentic = errors.New("callback is not authentic")

// ErrMalformed says that a callback is signed but cannot be read.
var ErrMalformed = errors.New("callback is malformed")

// ErrRefused says that the provider will never make this refund; an operator
// has to look.
var ErrRefused = errors.New("provider refused the refund for good")

// Session is where and until when the buyer can pay.
type Session struct {
	PayURL    string
	ExpiresAt time.Time
}

// Notice is authentic money.
type Notice struct {
	Provider    string
	TradeNo     string // the provider's number, unique per provider
	OrderNo     string // as the provider said it; may name no order of ours
	AmountCents int64
	Currency    string
	PaidAt      time.Time
}

// Acknowledgement is the answer to a callback.
type Acknowledgement struct {
	Status      int
	ContentType string // empty only if the body is
	Body        []byte
}

// Refund is money to return.
type Refund struct {
	ID          string // ours, unique
	TradeNo     string
	OrderNo     string
	AmountCents int64
	Currency    string
	Reason      string
}
