package storesql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	// SQLite's index leaves out lines without an order.
	sqlStoryAudit    = `SELECT create_time, actor, action, reason FROM tb_audit WHERE order_no = ? AND order_no <> '' ORDER BY id`
	sqlStoryStock    = `SELECT create_time, before_stock, after_stock FROM tb_stock_log WHERE order_no = ? ORDER BY seq`
	sqlStoryLetter   = `SELECT create_time, dead_time, closed_time, attempts, reason FROM tb_dead_letter WHERE order_no = ?`
	sqlStoryPayments = `SELECT create_time, done_time, type, status, amount_cents, currency, provider, reason, attempts, last_error
		FROM tb_payment WHERE order_no = ? ORDER BY create_time, type, id`
)

type story struct{ lines []store.StoryLine }

func (st *story) add(at time.Time, kind, format string, args ...any) {
	if !at.IsZero() {
		st.lines = append(st.lines, store.StoryLine{At: at, Kind: kind, What: fmt.Sprintf(format, args...)})
	}
}

func because(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

func (s *Store) Story(ctx context.Context, no seckill.OrderNo) ([]store.StoryLine, error) {
	var st story
	err := s.snapshot(ctx, "read story", func(ctx context.Context, r *session) error {
		parts := []struct {
			query string
			tell  func(*story, scanner) error
		}{
			{sqlStoryAudit, tellOperator}, {sqlStoryLetter, tellLetter}, {r.dialect.storyEvents, tellEvent}, {sqlStoryStock, tellStock}, {sqlStoryPayments, tellPayment},
		}
		for _, part := range parts {
			err := r.query(ctx, part.query, []any{no.String()}, func(row scanner) error { return part.tell(&st, row) })
			if err != nil {
				return err
			}
		}
		if len(st.lines) == 0 {
			return seckill.Errorf(seckill.CodeNotFound, "no order %s", no)
		}
		return nil
	})
	slices.SortStableFunc(st.lines, func(a, b store.StoryLine) int { return a.At.Compare(b.At) })
	return st.lines, err
}

func tellOperator(st *story, row scanner) error {
	var at time.Time
	var actor, action, reason string
	err := row.Scan(millisTime{&at}, &actor, &action, &reason)
	st.add(at, "operator", "%s", because(action+" by "+actor, reason))
	return err
}

func tellEvent(st *story, row scanner) error {
	var at time.Time
	var event, reason string
	err := row.Scan(millisTime{&at}, &event, &reason)
	st.add(at, "event", "%s", because(event, reason))
	return err
}

func tellStock(st *story, row scanner) error {
	var at time.Time
	var before, after int64
	err := row.Scan(millisTime{&at}, &before, &after)
	st.add(at, "stock", "stock %d -> %d", before, after)
	return err
}

func tellLetter(st *story, row scanner) error {
	var created, dead, closed time.Time
	var attempts int
	var reason string
	err := row.Scan(millisTime{&created}, millisTime{&dead}, millisTime{&closed}, &attempts, &reason)
	st.add(created, "letter", "%s", because("parked", reason))
	st.add(dead, "letter", "dead after %d attempts", attempts)
	st.add(closed, "letter", "closed")
	return err
}

func tellPayment(st *story, row scanner) error {
	var created, done time.Time
	var kind, status, currency, provider, reason, failure string
	var amount int64
	var attempts int
	err := row.Scan(millisTime{&created}, millisTime{&done}, &kind, &status, &amount, &currency, &provider, &reason, &attempts, &failure)
	if kind == typePayment {
		st.add(created, "payment", "payment %s, %d %s by %s", status, amount, currency, provider)
		return err
	}
	st.add(created, "payment", "refund owed, %d %s by %s: %s", amount, currency, provider, reason)
	if failure != "" {
		st.add(created, "payment", "refund failed %d times, last: %s", attempts, failure)
	}
	st.add(done, "payment", "refund done")
	return err
}
