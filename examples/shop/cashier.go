package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"
)

const (
	tellEvery   = 500 * time.Millisecond
	tellBatch   = 50
	firstRetry  = 250 * time.Millisecond
	longRetry   = 30 * time.Second
	maxDoubling = 7 // 250 ms doubled seven times is longer than longRetry
)

// Payment is money that the fake cashier took.
type Payment struct {
	OrderNo     string `json:"order_no"`
	TradeNo     string `json:"trade_no"`
	AmountCents int64  `json:"amount_cents"`
}

// payOrder is the fake cashier. It writes the payment down first: from then on
// the teller brings it to the engine, whatever dies in between. The order's own
// row changes when the event order.paid arrives.
func (s *Shop) payOrder(w http.ResponseWriter, r *http.Request, user User) {
	no := r.PathValue("no")
	order, err := findOrder(r.Context(), s.db, no)
	if errors.Is(err, sql.ErrNoRows) || err == nil && order.UserID != user.ID {
		s.notFound(w, r)
		return
	}
	if err == nil && order.Status == Pending {
		// The trade number is the order's own, so a second press pays nothing twice.
		_, err = s.db.ExecContext(r.Context(), `INSERT INTO payment (order_no, trade_no, amount_cents, state, next_at)
			VALUES (?, ?, ?, 'due', ?) ON CONFLICT (order_no) DO NOTHING`, no, "shop-"+no, order.AmountCents, s.now().UnixMilli())
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	select {
	case s.paid <- struct{}{}: // wakes the teller
	default:
	}
	http.Redirect(w, r, "/orders/"+no, http.StatusSeeOther)
}

// tell brings payments to the engine until ctx ends.
func (s *Shop) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		if err := s.tellDue(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("payments not told to the engine, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.paid:
		}
	}
}

// tellDue tells the engine of each payment that is due. The result is written
// after the answer: a crash between the two repeats the call, which is safe.
func (s *Shop) tellDue(ctx context.Context) error {
	due, err := s.duePayments(ctx)
	if err != nil {
		return err
	}
	for _, p := range due {
		state := "done"
		if err := s.engine.NotifyPayment(ctx, p); err != nil {
			state = "due"
			if refusal, refused := errors.AsType[*Refusal](err); refused && refusal.Final() {
				state = "refused"
				s.log.Error("payment refused, return the money by hand", "order_no", p.OrderNo, "error", err)
			}
		}
		_, err := s.db.ExecContext(ctx, `UPDATE payment SET state = ?, attempts = attempts + 1,
			next_at = ? + min(? << min(attempts, ?), ?) WHERE order_no = ?`,
			state, s.now().UnixMilli(), firstRetry.Milliseconds(), maxDoubling, longRetry.Milliseconds(), p.OrderNo)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Shop) duePayments(ctx context.Context) (due []Payment, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT order_no, trade_no, amount_cents FROM payment
		WHERE state = 'due' AND next_at <= ? ORDER BY next_at LIMIT ?`, s.now().UnixMilli(), tellBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p Payment
		if err := rows.Scan(&p.OrderNo, &p.TradeNo, &p.AmountCents); err != nil {
			return nil, err
		}
		due = append(due, p)
	}
	return due, rows.Err()
}
