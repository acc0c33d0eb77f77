package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"seckill/internal/api"
	"seckill/internal/payment/paysandbox"
	"seckill/test/login"
)

// tokenLife is longer than any test.
const tokenLife = 24 * time.Hour

// Buyer is one buyer's client of the shop API.
type Buyer struct {
	Name   string
	engine *Engine
	header http.Header
}

// Buyer signs a buyer in.
func (e *Engine) Buyer(name string) *Buyer {
	token, err := login.Token([]byte(JWTSecret), name, time.Now().Add(tokenLife))
	if err != nil {
		panic(fmt.Sprintf("sign buyer %q in: %v", name, err))
	}
	return e.BearerOf(name, token)
}

// BearerOf is a buyer with a token that the test made.
func (e *Engine) BearerOf(name, token string) *Buyer {
	return &Buyer{Name: name, engine: e, header: http.Header{"Authorization": {"Bearer " + token}}}
}

// At is the same buyer at another instance.
func (b *Buyer) At(e *Engine) *Buyer {
	return &Buyer{Name: b.Name, engine: e, header: b.header}
}

// Purchase is what a buyer asks for.
type Purchase struct {
	Quantity int    `json:"quantity"`
	Token    string `json:"token,omitempty"`
	Ref      string `json:"ref,omitempty"`
	Key      string `json:"-"` // the header Idempotency-Key
}

// Buy asks for units and returns the number of the promised order. A refusal
// is a *Refusal; any other error means that no answer came.
func (b *Buyer) Buy(ctx context.Context, product uint32, p Purchase) (orderNo string, err error) {
	var accepted struct {
		OrderNo string `json:"order_no"`
	}
	header := b.header
	if p.Key != "" {
		header = header.Clone()
		header.Set("Idempotency-Key", p.Key)
	}
	url := fmt.Sprintf("%s/api/v1/products/%d/orders", b.engine.ShopURL, product)
	err = b.engine.do(ctx, request{http.MethodPost, url, header, p}, &accepted)
	return accepted.OrderNo, err
}

// Challenge is the engine's challenge for a purchase token.
type Challenge struct {
	ID           string    `json:"challenge_id"`
	Type         string    `json:"type"`
	ExpiresAt    time.Time `json:"expires_at"`
	Difficulty   int       `json:"difficulty"`
	Image        string    `json:"image"`
	Alternatives []string  `json:"alternatives"`
	WidgetURL    string    `json:"widget_url"`
}

// Challenge asks for a challenge; kind is "" for the usual one.
func (b *Buyer) Challenge(ctx context.Context, product uint32, kind string) (c Challenge, err error) {
	err = b.call(ctx, http.MethodPost, fmt.Sprintf("/api/v1/products/%d/challenge", product), map[string]string{"type": kind}, &c)
	return c, err
}

// Token answers a challenge and returns the purchase token.
func (b *Buyer) Token(ctx context.Context, product uint32, challengeID, answer string) (token string, err error) {
	var granted struct {
		Token string `json:"token"`
	}
	body := map[string]string{"challenge_id": challengeID, "answer": answer}
	err = b.call(ctx, http.MethodPost, fmt.Sprintf("/api/v1/products/%d/token", product), body, &granted)
	return granted.Token, err
}

// Order reads one of the buyer's orders.
func (b *Buyer) Order(ctx context.Context, orderNo string) (order api.Order, err error) {
	err = b.call(ctx, http.MethodGet, "/api/v1/orders/"+orderNo, nil, &order)
	return order, err
}

// Listing is a list of orders as it was answered.
type Listing struct {
	Orders  []api.Order `json:"orders"`
	Partial bool        `json:"partial"` // orders may be missing
}

// List lists the buyer's newest orders, 100 at most.
func (b *Buyer) List(ctx context.Context) (list Listing, err error) {
	err = b.call(ctx, http.MethodGet, "/api/v1/orders?limit=100", nil, &list)
	return list, err
}

// Orders are those of List.
func (b *Buyer) Orders(ctx context.Context) ([]api.Order, error) {
	list, err := b.List(ctx)
	return list.Orders, err
}

// Cancel cancels one of the buyer's orders.
func (b *Buyer) Cancel(ctx context.Context, orderNo string) (order api.Order, err error) {
	err = b.call(ctx, http.MethodPost, "/api/v1/orders/"+orderNo+"/cancel", nil, &order)
	return order, err
}

// BeginPayment asks where to pay.
func (b *Buyer) BeginPayment(ctx context.Context, orderNo string) (payURL string, err error) {
	var session struct {
		PayURL string `json:"pay_url"`
	}
	err = b.call(ctx, http.MethodPost, "/api/v1/orders/"+orderNo+"/payment", map[string]string{"provider": paysandbox.Name}, &session)
	return session.PayURL, err
}

func (b *Buyer) call(ctx context.Context, method, path string, body, result any) error {
	return b.engine.do(ctx, request{method, b.engine.ShopURL + path, b.header, body}, result)
}

// Notice is the sandbox provider's callback.
type Notice struct {
	OrderNo     string `json:"order_no"`
	TradeNo     string `json:"trade_no"`
	AmountCents int64  `json:"amount_cents"`
}

// Signature signs a callback's body as a shop's cashier does.
func Signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// Notify delivers a callback as the sandbox provider does, signed.
func (e *Engine) Notify(ctx context.Context, n Notice) error {
	body := fmt.Appendf(nil, `{"order_no":%q,"trade_no":%q,"amount_cents":%d}`, n.OrderNo, n.TradeNo, n.AmountCents)
	header := http.Header{paysandbox.SignatureHeader: {Signature(SandboxSecret, body)}}
	return e.do(ctx, request{http.MethodPost, e.ShopURL + "/api/v1/payments/" + paysandbox.Name + "/notify", header, body}, nil)
}
