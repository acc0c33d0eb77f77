// Package paysandbox is a payment provider without real money: a pay page on
// the shop's own address, and callbacks that are signed with a secret of the
// shop. The demo, the load test and the end-to-end tests pay with it. It is an
// example for a provider of the shop's own.
//
// It stores nothing. Addresses of the page are signed, and trade numbers are
// derived. Refund ids are remembered in memory up to a bound. After a restart a
// repeated refund is made again, which changes no order.
//
//   - sandbox.go: the provider; bill.go: signed addresses; page.go, text.go: the page
//   - notice.go: callbacks; refund.go: refunds
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
	// Name is the provider's name in the API and in the store.
	Name = "sandbox"
	// PagePath is the path at which to serve Page.
	PagePath = "/sandbox/pay"
	// SignatureHeader carries the hex HMAC-SHA256 of a callback's raw body.
	SignatureHeader = "X-Signature"

	// openEnded is how long an address is valid for an order without
	// pay_before.
	openEnded = 30 * time.Minute
)

// Options of a Sandbox. All are required.
type Options struct {
	// Secret signs callbacks and addresses.
	Secret []byte
	// BaseURL returns the shop's public address without a slash at the end. It
	// is called each time, because a server on port 0 learns its address late.
	// If it returns "", addresses are relative.
	BaseURL func() string
	// Deliver sends a callback from the page to the shop's notify route. If the
	// error has a seckill code, the buyer sees its text.
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

// Name returns "sandbox".
func (s *Sandbox) Name() string { return Name }

// Begin returns a signed address of the pay page. It is valid until the order
// expires. Nothing is stored.
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
