package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	maxPage        = 500 // rows of every list
	refreshSeconds = "1" // until the browser loads a page again that waits for an event
)

// Status is where an order stands, in the engine's words.
type Status string

// The statuses of an order.
const (
	Pending   Status = "pending"
	Paid      Status = "paid"
	Cancelled Status = "cancelled"
	Failed    Status = "failed"
	Refunded  Status = "refunded"
)

// Order is a row of the shop's order table.
type Order struct {
	OrderNo     string    `json:"order_no"`
	SKU         string    `json:"sku"`
	UserID      string    `json:"user"`
	Quantity    int       `json:"quantity"`
	AmountCents int64     `json:"amount_cents"`
	Status      Status    `json:"status"`
	Updated     time.Time `json:"updated"`
}

// movesFrom are the statuses that may follow. An order never moves back, so a
// replay of old events changes nothing, whatever their age.
var movesFrom = map[Status][]Status{
	Pending: {Paid, Cancelled, Refunded},
	Paid:    {Refunded},
}

// Become moves the order, and reports whether the move is one forward.
func (o *Order) Become(status Status, at time.Time) bool {
	if !slices.Contains(movesFrom[o.Status], status) {
		return false
	}
	o.Status, o.Updated = status, at
	return true
}

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const orderColumns = `order_no, sku, user_id, quantity, amount_cents, status, updated`

func scanOrder(scan func(...any) error) (o Order, err error) {
	var updated int64
	err = scan(&o.OrderNo, &o.SKU, &o.UserID, &o.Quantity, &o.AmountCents, &o.Status, &updated)
	o.Updated = time.UnixMilli(updated).UTC()
	return o, err
}

// findOrder returns sql.ErrNoRows if no event of the order has arrived yet.
func findOrder(ctx context.Context, q queryer, orderNo string) (Order, error) {
	return scanOrder(q.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM shop_order WHERE order_no = ?`, orderNo).Scan)
}

func insertOrder(ctx context.Context, tx *sql.Tx, o Order) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO shop_order (`+orderColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		o.OrderNo, o.SKU, o.UserID, o.Quantity, o.AmountCents, o.Status, o.Updated.UnixMilli())
	return err
}

func listOrders(ctx context.Context, q queryer, where string, args ...any) ([]Order, error) {
	rows, err := q.QueryContext(ctx, `SELECT `+orderColumns+` FROM shop_order WHERE `+where+fmt.Sprintf(` LIMIT %d`, maxPage), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	orders := []Order{}
	for rows.Next() {
		order, err := scanOrder(rows.Scan)
		if err != nil {
			return nil, err
		}
		orders = append(orders, order)
	}
	return orders, rows.Err()
}

// serveOrders lists the order table by number, for operators. Ask again with
// `after` set to `next` until `next` is empty.
func (s *Shop) serveOrders(w http.ResponseWriter, r *http.Request) {
	orders, err := listOrders(r.Context(), s.db, `order_no > ? ORDER BY order_no`, r.URL.Query().Get("after"))
	if err != nil {
		s.log.Error("orders not listed", "error", err)
		http.Error(w, "database does not answer", http.StatusServiceUnavailable)
		return
	}
	next := ""
	if len(orders) == maxPage {
		next = orders[maxPage-1].OrderNo
	}
	writeJSON(w, http.StatusOK, map[string]any{"orders": orders, "next": next})
}

// showOrders lists the user's own orders, newest first: order numbers grow.
func (s *Shop) showOrders(w http.ResponseWriter, r *http.Request, user User) {
	orders, err := listOrders(r.Context(), s.db, `user_id = ? ORDER BY order_no DESC`, user.ID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.render(w, r, http.StatusOK, "orders", user, orders)
}

// showOrder shows one order. An order whose first event is still on its way has
// no row: the page says so and loads again. Others' orders look the same.
func (s *Shop) showOrder(w http.ResponseWriter, r *http.Request, user User) {
	order, err := findOrder(r.Context(), s.db, r.PathValue("no"))
	if errors.Is(err, sql.ErrNoRows) || err == nil && order.UserID != user.ID {
		w.Header().Set("Refresh", refreshSeconds)
		s.render(w, r, http.StatusOK, "waiting", user, nil)
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	view := struct {
		Order
		Paying, Refund string
	}{Order: order}
	err = s.db.QueryRowContext(r.Context(), `SELECT
		COALESCE((SELECT state FROM payment WHERE order_no = ?1), ''),
		COALESCE((SELECT state FROM refund WHERE order_no = ?1 ORDER BY state LIMIT 1), '')`, order.OrderNo).Scan(&view.Paying, &view.Refund)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if order.Status == Pending {
		w.Header().Set("Refresh", refreshSeconds) // an event may arrive any time
	}
	s.render(w, r, http.StatusOK, "order", user, view)
}

// cancelOrder asks the engine, as the buyer. The row changes when the event
// arrives.
func (s *Shop) cancelOrder(w http.ResponseWriter, r *http.Request, user User) {
	if err := s.engine.Cancel(r.Context(), user.ID, r.PathValue("no"), r.Header.Get("Accept-Language")); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/orders/"+r.PathValue("no"), http.StatusSeeOther)
}
