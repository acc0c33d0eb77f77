package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxWebhookBytes = 64 << 10
	webhookWithin   = 5 * time.Second
	eventPrefix     = "seckill."
)

// Event is a CloudEvents envelope of the engine.
type Event struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Time    time.Time       `json:"time"`
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"data"`
}

// errMalformed is for an event that no retry can mend.
var errMalformed = errors.New("malformed event")

// read reads the event's data; an event without data leaves it empty.
func (e Event) read(data any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, data); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

// receiveWebhook applies one event of the engine.
//
// 204 means that the change is committed. After any other answer the engine
// sends the event again: 5xx if the database did not answer, 4xx if the request
// itself is wrong.
func (s *Shop) receiveWebhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhookBytes))
	if err != nil {
		status := http.StatusBadRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "read webhook: "+err.Error(), status)
		return
	}
	id, err := verifyWebhook(s.webhookSecrets, r.Header, body, s.now())
	if err != nil {
		s.log.Warn("webhook refused", "error", err)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var event Event
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "read webhook: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), webhookWithin)
	defer cancel()
	switch err := s.applyOnce(ctx, id, event); {
	case errors.Is(err, errMalformed):
		s.log.Error("webhook refused", "id", id, "type", event.Type, "error", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		s.log.Error("webhook not applied, the engine will repeat it", "id", id, "type", event.Type, "error", err)
		http.Error(w, "database does not answer", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// applyOnce applies an event and remembers its webhook id in one transaction,
// so that a crash leaves both or neither. A known id changes nothing.
func (s *Shop) applyOnce(ctx context.Context, id string, event Event) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("apply event: %w", err)
	}
	defer tx.Rollback() // does nothing after the commit
	added, err := tx.ExecContext(ctx, `INSERT INTO webhook (id, received) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, id, s.now().UnixMilli())
	if err != nil {
		return fmt.Errorf("apply event: %w", err)
	}
	if rows, err := added.RowsAffected(); err != nil || rows == 0 {
		return err // a repeated webhook
	}
	if err := s.apply(ctx, tx, event); err != nil {
		return fmt.Errorf("apply %s: %w", event.Type, err)
	}
	return tx.Commit()
}

// apply makes the change of one event. Types that the shop does not know, such
// as the echo of `seckill sink test`, change nothing.
func (s *Shop) apply(ctx context.Context, tx *sql.Tx, event Event) error {
	kind, name, _ := strings.Cut(strings.TrimPrefix(event.Type, eventPrefix), ".")
	switch kind {
	case "order":
		return s.applyOrder(ctx, tx, name, event)
	case "refund":
		return applyRefund(ctx, tx, name, event)
	case "sale":
		return applySale(ctx, tx, name, event)
	}
	return nil
}

// statusAfter is an order's status after each event. order.expiring is missing:
// it changes nothing, and a shop may remind its customer there.
var statusAfter = map[string]Status{
	"confirmed": Pending, "paid": Paid, "cancelled": Cancelled, "failed": Failed, "refunded": Refunded,
}

// applyOrder moves an order to the status that the event's type names. The
// order's first event that arrives creates the row.
func (s *Shop) applyOrder(ctx context.Context, tx *sql.Tx, name string, event Event) error {
	status, known := statusAfter[name]
	if !known {
		return nil
	}
	var data struct {
		OrderNo     string `json:"order_no"`
		ProductID   int64  `json:"product_id"`
		Buyer       string `json:"buyer"`
		Quantity    int    `json:"quantity"`
		AmountCents int64  `json:"amount_cents"`
	}
	if err := event.read(&data); err != nil {
		return err
	}
	if data.OrderNo == "" || data.Buyer == "" || data.Quantity <= 0 {
		return fmt.Errorf("%w: order number, buyer or quantity is missing", errMalformed)
	}
	order, err := findOrder(ctx, tx, data.OrderNo)
	if errors.Is(err, sql.ErrNoRows) {
		sku, err := skuOf(ctx, tx, data.ProductID)
		if err != nil {
			return err
		}
		return insertOrder(ctx, tx, Order{
			OrderNo: data.OrderNo, SKU: sku, UserID: data.Buyer, Quantity: data.Quantity,
			AmountCents: data.AmountCents, Status: status, Updated: event.Time,
		})
	}
	if err != nil {
		return err
	}
	if !order.Become(status, event.Time) {
		s.log.Info("event ignored, the order is further", "order_no", order.OrderNo, "status", order.Status, "event", event.Type)
		return nil
	}
	_, err = tx.ExecContext(ctx, `UPDATE shop_order SET status = ?, updated = ? WHERE order_no = ?`,
		order.Status, order.Updated.UnixMilli(), order.OrderNo)
	return err
}

// applyRefund notes that the engine owes the buyer money, or has returned it.
func applyRefund(ctx context.Context, tx *sql.Tx, name string, event Event) error {
	if name != "required" && name != "settled" {
		return nil
	}
	var data struct {
		ID      string `json:"id"`
		OrderNo string `json:"order_no"`
	}
	if err := event.read(&data); err != nil {
		return err
	}
	if data.OrderNo == "" {
		data.OrderNo = event.Subject
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO refund (order_no, id, state, updated) VALUES (?, ?, ?, ?)
		ON CONFLICT (order_no, id) DO UPDATE SET state = excluded.state, updated = excluded.updated WHERE state <> 'settled'`,
		data.OrderNo, data.ID, name, event.Time.UnixMilli())
	return err
}

// applySale keeps the newest state of a sale, and the units that come back to the
// shop at its end. A sale that the shop did not create is none of its own.
func applySale(ctx context.Context, tx *sql.Tx, name string, event Event) error {
	var data struct {
		ProductID     int64  `json:"product_id"`
		ReturnedUnits *int64 `json:"returned_units"`
	}
	if err := event.read(&data); err != nil {
		return err
	}
	if data.ProductID == 0 {
		data.ProductID, _ = strconv.ParseInt(event.Subject, 10, 64) // 0 is no sale of the shop
	}
	_, err := tx.ExecContext(ctx, `UPDATE sale SET state = ?1, state_at = ?2, returned_units = COALESCE(?3, returned_units)
		WHERE product_id = ?4 AND state_at <= ?2`, name, event.Time.UnixMilli(), data.ReturnedUnits, data.ProductID)
	return err
}
