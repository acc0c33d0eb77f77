package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"seckill"
	"seckill/internal/api"
)

// Operator is a client of the operator API.
type Operator struct{ engine *Engine }

// Operator signs the operator in.
func (e *Engine) Operator() *Operator { return &Operator{e} }

// Product is a product to create; zero fields are left to the server.
type Product struct {
	ID           uint32    `json:"id"`
	Name         string    `json:"name"`
	ImageURL     string    `json:"image_url,omitempty"`
	Unlisted     bool      `json:"unlisted,omitempty"`
	Test         bool      `json:"test,omitempty"`
	PriceCents   int64     `json:"price_cents"`
	Stock        int64     `json:"stock"`
	PerUserLimit int       `json:"per_user_limit,omitempty"`
	LimitGroup   uint32    `json:"limit_group,omitempty"`
	StartsAt     time.Time `json:"starts_at"`
	EndsAt       time.Time `json:"ends_at"`
	Shards       int       `json:"shards,omitempty"`
	Strategy     string    `json:"strategy,omitempty"`
	// With Fallback "store" the store takes the sale over while the ledger is
	// down.
	Fallback string `json:"fallback,omitempty"`
}

// OpenSale creates a product that is on sale now, for an hour, and preheats
// it. A name, a price and a window that are not set are filled in.
func (o *Operator) OpenSale(ctx context.Context, p Product) (api.AdminProduct, error) {
	if p.Name == "" {
		p.Name = fmt.Sprintf("product %d", p.ID)
	}
	if p.PriceCents == 0 {
		p.PriceCents = 100
	}
	if p.StartsAt.IsZero() {
		p.StartsAt = time.Now().Add(-time.Minute)
	}
	if p.EndsAt.IsZero() {
		p.EndsAt = time.Now().Add(time.Hour)
	}
	if created, err := o.Create(ctx, p); err != nil {
		return created, err
	}
	return o.preheated(ctx, p.ID)
}

// preheated preheats a product. It repeats the request while the answer is
// busy, as it may be on a busy machine; repeating is safe.
func (o *Operator) preheated(ctx context.Context, id uint32) (api.AdminProduct, error) {
	deadline := time.NewTimer(ReadyWithin)
	defer deadline.Stop()
	for {
		p, err := o.Preheat(ctx, id)
		if CodeOf(err) != seckill.CodeBusy {
			return p, err
		}
		select {
		case <-deadline.C:
			return p, err
		case <-time.After(pollEvery):
		}
	}
}

// Create creates a product.
func (o *Operator) Create(ctx context.Context, p Product) (created api.AdminProduct, err error) {
	err = o.call(ctx, http.MethodPost, "/products", p, &created)
	return created, err
}

// Product reads a product.
func (o *Operator) Product(ctx context.Context, id uint32) (p api.AdminProduct, err error) {
	err = o.call(ctx, http.MethodGet, productPath(id, ""), nil, &p)
	return p, err
}

// Patch changes a product's terms.
func (o *Operator) Patch(ctx context.Context, id uint32, fields map[string]any) (p api.AdminProduct, err error) {
	err = o.call(ctx, http.MethodPatch, productPath(id, ""), fields, &p)
	return p, err
}

// Preheat hands a product's stock to the ledger.
func (o *Operator) Preheat(ctx context.Context, id uint32) (api.AdminProduct, error) {
	return o.onProduct(ctx, id, "preheat")
}

// Recover rebuilds a product's ledger from the store.
func (o *Operator) Recover(ctx context.Context, id uint32) (api.AdminProduct, error) {
	return o.onProduct(ctx, id, "recover")
}

// TakeOver makes the store sell a product instead of the ledger.
func (o *Operator) TakeOver(ctx context.Context, id uint32) (api.AdminProduct, error) {
	return o.onProduct(ctx, id, "takeover")
}

// Pause pauses a sale.
func (o *Operator) Pause(ctx context.Context, id uint32) (api.AdminProduct, error) {
	return o.onProduct(ctx, id, "pause")
}

// PauseWhere is Pause and reports whether the store has the pause. If not, only
// the ledger has it (202).
func (o *Operator) PauseWhere(ctx context.Context, id uint32) (inStore bool, err error) {
	var status int
	err = o.call(ctx, http.MethodPost, productPath(id, "/pause"), nil, &status)
	return status == http.StatusOK, err
}

// Resume resumes a sale.
func (o *Operator) Resume(ctx context.Context, id uint32) (api.AdminProduct, error) {
	return o.onProduct(ctx, id, "resume")
}

// End ends a sale for good.
func (o *Operator) End(ctx context.Context, id uint32) (api.AdminProduct, error) {
	return o.onProduct(ctx, id, "end")
}

// Delete deletes a test product that has ended, with its orders.
func (o *Operator) Delete(ctx context.Context, id uint32) (orders int, err error) {
	var deleted struct {
		Orders int `json:"orders"`
	}
	err = o.call(ctx, http.MethodDelete, productPath(id, ""), nil, &deleted)
	return deleted.Orders, err
}

func (o *Operator) onProduct(ctx context.Context, id uint32, verb string) (p api.AdminProduct, err error) {
	err = o.call(ctx, http.MethodPost, productPath(id, "/"+verb), nil, &p)
	return p, err
}

// ChangeStock changes the stock that is offered. Repeated with the same change
// id it counts once.
func (o *Operator) ChangeStock(ctx context.Context, id uint32, delta int64, changeID string) (change api.StockChange, err error) {
	err = o.call(ctx, http.MethodPost, productPath(id, "/stock"), map[string]any{"delta": delta, "change_id": changeID, "reason": "test"}, &change)
	return change, err
}

// Stats reads a product's figures.
func (o *Operator) Stats(ctx context.Context, id uint32) (figures api.Stats, err error) {
	err = o.call(ctx, http.MethodGet, productPath(id, "/stats"), nil, &figures)
	return figures, err
}

// Reconcile counts a product now.
func (o *Operator) Reconcile(ctx context.Context, id uint32, repair bool) (report api.Report, err error) {
	err = o.call(ctx, http.MethodPost, "/reconciliations", map[string]any{"product_id": id, "repair": repair}, &report)
	return report, err
}

// Order reads an order with its history.
func (o *Operator) Order(ctx context.Context, orderNo string) (story api.OrderStory, err error) {
	err = o.call(ctx, http.MethodGet, "/orders/"+orderNo, nil, &story)
	return story, err
}

// Orders searches orders, 500 at most.
func (o *Operator) Orders(ctx context.Context, filter url.Values) ([]api.AdminOrder, error) {
	var list struct {
		Orders []api.AdminOrder `json:"orders"`
	}
	err := o.call(ctx, http.MethodGet, "/orders?limit=500&"+filter.Encode(), nil, &list)
	return list.Orders, err
}

// Cancel cancels a pending order.
func (o *Operator) Cancel(ctx context.Context, orderNo string) (order api.AdminOrder, err error) {
	err = o.call(ctx, http.MethodPost, "/orders/"+orderNo+"/cancel", nil, &order)
	return order, err
}

// Refund refunds a paid order.
func (o *Operator) Refund(ctx context.Context, orderNo string) (order api.AdminOrder, err error) {
	err = o.call(ctx, http.MethodPost, "/orders/"+orderNo+"/refund", nil, &order)
	return order, err
}

// Letters lists claims that are being retried and dead letters.
func (o *Operator) Letters(ctx context.Context) ([]api.Letter, error) {
	var list struct {
		Letters []api.Letter `json:"dead_letters"`
	}
	err := o.call(ctx, http.MethodGet, "/dead-letters?state=any&limit=500", nil, &list)
	return list.Letters, err
}

// RetryLetter restarts the retries of a claim.
func (o *Operator) RetryLetter(ctx context.Context, id int64) (letter api.Letter, err error) {
	err = o.call(ctx, http.MethodPost, fmt.Sprintf("/dead-letters/%d/retry", id), nil, &letter)
	return letter, err
}

// DiscardLetter discards a claim.
func (o *Operator) DiscardLetter(ctx context.Context, id int64) (order api.AdminOrder, err error) {
	err = o.call(ctx, http.MethodPost, fmt.Sprintf("/dead-letters/%d/discard", id), nil, &order)
	return order, err
}

// Payments lists the movements of money of an order.
func (o *Operator) Payments(ctx context.Context, orderNo string) ([]api.Payment, error) {
	var list struct {
		Payments []api.Payment `json:"payments"`
	}
	err := o.call(ctx, http.MethodGet, "/payments?limit=500&order_no="+url.QueryEscape(orderNo), nil, &list)
	return list.Payments, err
}

// Events reads the feed after a cursor, 1000 at most.
func (o *Operator) Events(ctx context.Context, after int64) (events []api.Event, next int64, err error) {
	var page struct {
		Events []api.Event `json:"events"`
		Next   int64       `json:"next"`
	}
	err = o.call(ctx, http.MethodGet, "/events?limit=1000&after="+strconv.FormatInt(after, 10), nil, &page)
	return page.Events, page.Next, err
}

// Audit lists a product's newest audit lines, 500 at most.
func (o *Operator) Audit(ctx context.Context, product uint32) ([]api.Audit, error) {
	var list struct {
		Audit []api.Audit `json:"audit"`
	}
	err := o.call(ctx, http.MethodGet, fmt.Sprintf("/audit?limit=500&product_id=%d", product), nil, &list)
	return list.Audit, err
}

func (o *Operator) call(ctx context.Context, method, path string, body, result any) error {
	header := http.Header{"Authorization": {"Bearer " + AdminToken}, "X-Operator": {"test"}}
	return o.engine.do(ctx, request{method, o.engine.AdminURL + "/admin/v1" + path, header, body}, result)
}

func productPath(id uint32, rest string) string { return fmt.Sprintf("/products/%d%s", id, rest) }
