package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"seckill"
)

// NewProduct is a product to create.
type NewProduct struct {
	ID           uint32
	Name         string
	PriceCents   int64
	Stock        int64
	PerUserLimit int
	StartsAt     time.Time
	EndsAt       time.Time
	Strategy     seckill.Strategy // "" is the server's default
	Test         bool             // a product of a rehearsal
}

// CreateProduct creates a product. If the id is taken, it returns a Refusal with
// wrong_state.
func (c *Client) CreateProduct(ctx context.Context, p NewProduct) (AdminProduct, error) {
	request := struct {
		ID           uint32           `json:"id"`
		Name         string           `json:"name"`
		PriceCents   int64            `json:"price_cents"`
		Stock        int64            `json:"stock"`
		PerUserLimit int              `json:"per_user_limit"`
		StartsAt     Time             `json:"starts_at"`
		EndsAt       Time             `json:"ends_at"`
		Strategy     seckill.Strategy `json:"strategy,omitempty"`
		Test         bool             `json:"test,omitempty"`
		why
	}{p.ID, p.Name, p.PriceCents, p.Stock, p.PerUserLimit, Time(p.StartsAt), Time(p.EndsAt), p.Strategy, p.Test, why{c.opt.Reason}}
	var created AdminProduct
	err := c.into(ctx, &created, http.MethodPost, request, nil, "products")
	return created, err
}

// Stats reads a product's figures.
func (c *Client) Stats(ctx context.Context, id uint32) (Stats, error) {
	var figures Stats
	err := c.into(ctx, &figures, http.MethodGet, nil, nil, "products", strconv.FormatUint(uint64(id), 10), "stats")
	return figures, err
}

// OrdersPage is the most orders of one page.
const OrdersPage = 500

// Orders returns a page of a product's orders, newest first. before is the order
// before which the page begins, or "" for the newest.
func (c *Client) Orders(ctx context.Context, product uint32, before string) ([]AdminOrder, error) {
	query := url.Values{"product_id": {strconv.FormatUint(uint64(product), 10)}, "limit": {strconv.Itoa(OrdersPage)}}
	if before != "" {
		query.Set("before", before)
	}
	var list struct {
		Orders []AdminOrder `json:"orders"`
	}
	err := c.into(ctx, &list, http.MethodGet, nil, query, "orders")
	return list.Orders, err
}

// Payments lists the movements of money of one order.
func (c *Client) Payments(ctx context.Context, orderNo string) ([]Payment, error) {
	var list struct {
		Payments []Payment `json:"payments"`
	}
	err := c.into(ctx, &list, http.MethodGet, nil, url.Values{"order_no": {orderNo}}, "payments")
	return list.Payments, err
}
