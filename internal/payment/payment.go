// Package payment is the port of stage ⑨: a provider takes and returns money.
// The store decides the effect of money on an order (I8).
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
	// Name is the provider's name in the API and in the store.
	Name() string

	// Begin returns an address at which the buyer pays exactly the order's
	// amount. It may be called any number of times for one order. After paying
	// or giving up, the provider sends the buyer to the address back; with ""
	// the provider chooses.
	Begin(ctx context.Context, order *seckill.Order, back string) (Session, error)

	// Notice reads a callback. It returns ErrNotAuthentic unless the provider
	// signed exactly these bytes, and ErrMalformed for a signed body that
	// cannot be read. It has no side effect, so a callback may come any number
	// of times.
	Notice(ctx context.Context, header http.Header, body []byte) (Notice, error)

	// Acknowledge returns the answer to a callback in the provider's own
	// protocol. If refusal is nil, the money is recorded: the answer has a 2xx
	// status, and the provider stops sending the callback. The answer to a
	// refusal must not look like an acknowledgement; seckill.CodeOf tells the
	// reason. For the zero Acknowledgement the shop API sends its problem
	// document.
	Acknowledge(refusal error) Acknowledgement

	// Refund returns money of one trade. It is idempotent by Refund.ID: the
	// money is returned once, after any number of calls. A nil error means that
	// the provider has accepted the refund finally.
	Refund(ctx context.Context, refund Refund) error
}

// ErrNotAuthentic says that the provider did not sign the callback.
var ErrNotAuthentic = errors.New("callback is not authentic")

// ErrMalformed says that a callback is signed but its content is invalid.
var ErrMalformed = errors.New("callback is malformed")

// ErrRefused says that the provider will never make this refund, so an operator
// has to act.
var ErrRefused = errors.New("provider refused the refund for good")

// Session is an address where the buyer can pay, and its expiry.
type Session struct {
	PayURL    string
	ExpiresAt time.Time
}

// Notice is a payment that an authentic callback reports.
type Notice struct {
	Provider    string
	TradeNo     string // the provider's number, unique per provider
	OrderNo     string // as the provider sent it; may not be an order of ours
	AmountCents int64
	Currency    string
	PaidAt      time.Time
}

// Acknowledgement is the answer to a callback.
type Acknowledgement struct {
	Status      int
	ContentType string // empty only if Body is empty
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
