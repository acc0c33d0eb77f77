// Package paysandbox is a payment provider without money: a pay page on the
// shop's own address, and callbacks signed with a secret that the shop has
// set. It is what the demo, the load test and the end-to-end tests pay with,
// and the pattern for a provider of the shop's own.
//
// It keeps nothing that has to survive: pay addresses carry their own
// signature, and trade numbers are derived. Refunds move imaginary money,
// so the only thing a real gateway would have to remember durably, which
// refund ids it has paid, is remembered in memory up to a bound. After a
// restart a repeated refund is made again; no order is touched by that.
package paysandbox

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"seckill"
	"seckill/internal/auth"
	"seckill/internal/payment"
)

const (
	// Name is the provider's name on the wire and in the store.
	Name = "sandbox"
	// PagePath is where the Page is to be served.
	PagePath = "/sandbox/pay"
	// SignatureHeader carries the hex HMAC-SHA256 of a callback's raw body.
	SignatureHeader = "X-Signature"

	// openEnded is how long an address serves for an order without pay_before.
	openEnded = 30 * time.Minute
)

// Options of a Sandbox. All are required.
type Options struct {
	// Secret signs callbacks and addresses.
	Secret []byte
	// BaseURL is the shop's public address without a slash at the end. It is
	// asked each time, because a server on port 0 learns its address late. An
	// empty one makes addresses relative.
	BaseURL func() string
	// Deliver carries a callback from the page to the shop's notify route. An
	// error with a seckill code is shown to the buyer in its words.
	Deliver func(ctx context.Context, header http.Header, body []byte) error
	Now     func() time.Time
	Log     *slog.Logger
}

// Sandbox is the provider. It is safe for concurrent use.
type Sandbox struct {
	ring    *auth.Ring
	baseURL func() string
	deliver func(ctx context.Context, header http.Header, body []byte) error
	now     func() time.Time
	log     *slog.Logger
	refunds refundMemory
}

var _ payment.Provider = (*Sandbox)(nil)

// New makes a sandbox.
func New(o Options) (*Sandbox, error) {
	ring, err := auth.NewRing(o.Secret)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return &Sandbox{
		ring: ring, baseURL: o.BaseURL, deliver: o.Deliver,
		now: o.Now, log: o.Log,
	}, nil
}

// Name is "sandbox".
func (s *Sandbox) Name() string { return Name }

// Begin makes a signed address of the pay page. It serves until the order
// expires; nothing is remembered.
func (s *Sandbox) Begin(_ context.Context, order *seckill.Order, back string) (payment.Session, error) {
	expires := order.PayBefore
	if expires.IsZero() {
		expires = s.now().Add(openEnded)
	}
	bill := bill{
		orderNo: order.OrderNo, amountCents: order.AmountCents(), currency: order.Currency,
		expires: expires.UTC().Truncate(time.Millisecond), back: back,
	}
	return payment.Session{PayURL: s.baseURL() + s.pageURL(bill), ExpiresAt: bill.expires}, nil
}
