package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	engineWithin    = 5 * time.Second
	maxAnswerBytes  = 1 << 20
	buyerTokenLife  = time.Hour
	sandboxProvider = "sandbox"
)

// Engine is a client of the flash-sale engine.
type Engine struct {
	PublicURL     string // what buyers use
	AdminURL      string // what operators use
	AdminToken    string
	JWTSecret     []byte // the engine's auth.jwt_secret
	SandboxSecret []byte // the engine's payment.sandbox_secret
	HTTP          *http.Client
}

// Refusal is an answer other than 2xx: an RFC 9457 document.
type Refusal struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("engine answered %d %s: %s", r.Status, r.Code, r.Detail)
}

// Final reports whether the same request would be refused again. 429 and 5xx
// mean "ask later"; `busy` says that the outcome is unknown.
func (r *Refusal) Final() bool { return r.Status < 500 && r.Status != http.StatusTooManyRequests }

// BuyerToken signs the user in at the engine: `sub` is the shop's user id.
func (e *Engine) BuyerToken(userID string, now time.Time) (string, error) {
	claims := jwt.RegisteredClaims{Subject: userID, ExpiresAt: jwt.NewNumericDate(now.Add(buyerTokenLife))}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(e.JWTSecret)
}

// PutOnSale creates the sale's product and hands its stock to the ledger. It is
// safe to repeat.
func (e *Engine) PutOnSale(ctx context.Context, sale Sale, name string) error {
	product := map[string]any{
		"id": sale.ProductID, "ref": sale.SKU, "name": name, "price_cents": sale.PriceCents, "stock": sale.Stock,
		"per_user_limit": sale.PerUserLimit, "starts_at": sale.StartsAt, "ends_at": sale.EndsAt,
	}
	path := fmt.Sprintf("%s/admin/v1/products/%d", e.AdminURL, sale.ProductID)
	err := e.call(ctx, http.MethodPost, e.AdminURL+"/admin/v1/products", e.asOperator(), product, nil)
	if refusal, refused := errors.AsType[*Refusal](err); refused && refusal.Status == http.StatusConflict {
		// The product exists. If it is this sale, an earlier request created it.
		var existing struct {
			Ref string `json:"ref"`
		}
		if err := e.call(ctx, http.MethodGet, path, e.asOperator(), nil, &existing); err != nil {
			return fmt.Errorf("put %s on sale: %w", sale.SKU, err)
		}
		if existing.Ref != sale.SKU {
			return fmt.Errorf("put %s on sale: product %d of the engine is %q", sale.SKU, sale.ProductID, existing.Ref)
		}
	} else if err != nil {
		return fmt.Errorf("put %s on sale: %w", sale.SKU, err)
	}
	if err := e.call(ctx, http.MethodPost, path+"/preheat", e.asOperator(), nil, nil); err != nil {
		return fmt.Errorf("preheat %s: %w", sale.SKU, err)
	}
	return nil
}

// Cancel cancels the user's own order. The title of a refusal is in language, an
// Accept-Language.
func (e *Engine) Cancel(ctx context.Context, userID, orderNo, language string) error {
	token, err := e.BuyerToken(userID, time.Now())
	if err != nil {
		return fmt.Errorf("cancel order: %w", err)
	}
	header := http.Header{"Authorization": {"Bearer " + token}, "Accept-Language": {language}}
	return e.call(ctx, http.MethodPost, e.PublicURL+"/api/v1/orders/"+url.PathEscape(orderNo)+"/cancel", header, nil, nil)
}

// NotifyPayment tells the engine that money was taken. The engine counts a
// trade number once, so this is safe to repeat.
func (e *Engine) NotifyPayment(ctx context.Context, p Payment) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("notify payment: %w", err)
	}
	mac := hmac.New(sha256.New, e.SandboxSecret)
	mac.Write(body)
	header := http.Header{"X-Signature": {hex.EncodeToString(mac.Sum(nil))}}
	return e.call(ctx, http.MethodPost, e.PublicURL+"/api/v1/payments/"+sandboxProvider+"/notify", header, json.RawMessage(body), nil)
}

func (e *Engine) asOperator() http.Header {
	return http.Header{"Authorization": {"Bearer " + e.AdminToken}, "X-Operator": {"shop"}}
}

// call sends one request and reads a 2xx answer into result, if not nil.
func (e *Engine) call(ctx context.Context, method, address string, header http.Header, body, result any) error {
	ctx, cancel := context.WithTimeout(ctx, engineWithin)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return err
	}
	req.Header = header
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := e.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		refusal := &Refusal{}
		_ = json.Unmarshal(text, refusal) // a proxy's answer may be no JSON: its status still counts
		refusal.Status = res.StatusCode
		return refusal
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}
