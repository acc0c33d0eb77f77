package storesql

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"seckill"
	"seckill/internal/payment"
	"seckill/internal/store"
)

// The types of rows in tb_payment.
const (
	typePayment = "payment"
	typeRefund  = "refund"

	moneyApplied = "applied"
	moneyExcess  = "excess"
	refundDue    = "due"
	refundDone   = "done"
	refundFailed = "failed"
)

// The reasons of refunds.
const (
	refundLate     = "late"
	refundDoubled  = "doubled"
	refundAmount   = "wrong_amount"
	refundUnknown  = "unknown_order"
	refundOperator = "operator"
)

const paymentColumns = `id, type, order_no, provider, trade_no, amount_cents, currency, status, reason, payment_id, attempts,
	create_time, done_time, product_id`

const (
	sqlPaymentKnown = `SELECT order_no, amount_cents, currency FROM tb_payment
		WHERE provider = ? AND trade_no = ? AND type = 'payment'`
	sqlPaymentsBy = `SELECT ` + paymentColumns + ` FROM tb_payment`
	sqlPayments   = sqlPaymentsBy + ` WHERE `
	sqlRefundsDue = sqlPayments + `status = 'due' AND next_time <= ? ORDER BY next_time, id LIMIT ?`
	sqlApplied    = sqlPayments + `order_no = ? AND type = 'payment' AND status = 'applied'`

	sqlInsertPayment = `INSERT INTO tb_payment (id, type, order_no, product_id, provider, trade_no, amount_cents, currency,
		status, reason, payment_id, attempts, last_error, next_time, trade_time, create_time)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,0,'',?,?,?)`

	sqlPayOrder = `UPDATE tb_seckill_order SET status = ?, pay_time = ? WHERE order_no = ? AND status = ?`

	sqlRefundDone = `UPDATE tb_payment SET status = 'done', done_time = ?, next_time = NULL
		WHERE id = ? AND type = 'refund' AND status <> 'done'`
	sqlRefundFailed = `UPDATE tb_payment SET status = ?, attempts = attempts + 1, last_error = ?, next_time = ?
		WHERE id = ? AND type = 'refund' AND status = 'due'`
	sqlRefund      = sqlPayments + `id = ? AND type = 'refund'`
	sqlRefundKnown = `SELECT 1 FROM tb_payment WHERE id = ? AND type = 'refund'`
)

// paymentRow is a payment or refund with its product.
type paymentRow struct {
	store.Payment
	product uint32
}

func scanPayment(row scanner, p *paymentRow) error {
	return row.Scan(&p.ID, &p.Type, &p.OrderNo, &p.Provider, &p.TradeNo, &p.AmountCents, &p.Currency, &p.Status, &p.Reason,
		text{&p.PaymentID}, &p.Attempts, millisTime{&p.CreatedAt}, millisTime{&p.DoneAt}, &p.product)
}

func queryPayments(ctx context.Context, r *session, query string, args ...any) ([]paymentRow, error) {
	return selectAll(ctx, r, query, args, scanPayment)
}

func (s *Store) listPayments(ctx context.Context, query string, args ...any) ([]store.Payment, error) {
	return listed(ctx, s, "list payments", query, args, func(row scanner, p *store.Payment) error {
		var whole paymentRow
		err := scanPayment(row, &whole)
		*p = whole.Payment
		return err
	})
}

func (s *Store) RecordPayment(ctx context.Context, notice payment.Notice) (store.PaymentResult, error) {
	if notice.Provider == "" || notice.TradeNo == "" || notice.AmountCents < 0 {
		return 0, seckill.Errorf(seckill.CodeBadRequest, "a payment needs a provider, a trade number and an amount")
	}
	return changed(ctx, s, "pay", func(ctx context.Context, tx *session) (store.PaymentResult, error) {
		said := payment.Notice{Provider: notice.Provider, TradeNo: notice.TradeNo, PaidAt: notice.PaidAt}
		known, err := tx.row(ctx, sqlPaymentKnown, []any{notice.Provider, notice.TradeNo}, &said.OrderNo, &said.AmountCents, &said.Currency)
		switch {
		case err != nil:
			return 0, err
		case known && said == notice:
			return store.PaymentRepeated, nil
		case known:
			return store.PaymentConflict, nil
		}
		return s.recordPayment(ctx, tx, &notice)
	})
}

func (s *Store) recordPayment(ctx context.Context, tx *session, notice *payment.Notice) (store.PaymentResult, error) {
	now := s.now()
	order, err := readOrder(ctx, tx, notice.OrderNo)
	unknown := seckill.CodeNotFound.In(err)
	if err != nil && !unknown {
		return 0, err
	}
	id, err := newID("PY", s.opt.Random)
	if err != nil {
		return 0, err
	}
	money := paymentRow{product: order.ProductID, Payment: store.Payment{
		ID: id, Type: typePayment, OrderNo: notice.OrderNo, Provider: notice.Provider, TradeNo: notice.TradeNo,
		AmountCents: notice.AmountCents, Currency: notice.Currency, Status: moneyApplied,
	}}
	exact := notice.AmountCents == order.AmountCents() && notice.Currency == order.Currency
	var excess string
	switch {
	case unknown:
		excess = refundUnknown
		if no, err := seckill.ParseOrderNo(notice.OrderNo); err == nil {
			money.product = no.ProductID()
		}
	case order.Status == seckill.OrderPaid || order.Status == seckill.OrderRefunded:
		excess = refundDoubled
	case order.Status != seckill.OrderPending:
		excess = refundLate
	case !exact:
		excess = refundAmount
	default:
		if err := insertPayment(ctx, tx, &money, notice.PaidAt, now); err != nil {
			return 0, err
		}
		return store.PaymentPaid, payOrder(ctx, tx, &order, now)
	}
	money.Status = moneyExcess
	if err := insertPayment(ctx, tx, &money, notice.PaidAt, now); err != nil {
		return 0, err
	}
	return store.PaymentExcess, s.oweRefund(ctx, tx, &money, excess, now)
}

func payOrder(ctx context.Context, tx *session, order *seckill.Order, now time.Time) error {
	from := order.Status
	if err := order.Pay(now); err != nil {
		return err
	}
	err := compared(tx.exec(ctx, sqlPayOrder, int64(order.Status), millis(now), order.OrderNo.String(), int64(from)))
	if err != nil { // the order was moved since it was read
		return err
	}
	if err := writeOrderEvents(ctx, tx, seckill.EventOrderPaid, []seckill.Order{*order}, now); err != nil {
		return err
	}
	n := int64(order.Quantity)
	return countUnits(ctx, tx, order.ProductID, units{from, -n}, units{order.Status, n})
}

func insertPayment(ctx context.Context, tx *session, p *paymentRow, traded, now time.Time) error {
	var next any
	if p.Status == refundDue {
		next = millis(now)
	}
	_, err := tx.exec(ctx, sqlInsertPayment, p.ID, p.Type, p.OrderNo, p.product, p.Provider, p.TradeNo, p.AmountCents, p.Currency,
		p.Status, p.Reason, nullText(p.PaymentID), next, nullMillis(traded), millis(now))
	return err
}

// oweRefund owes a refund of the whole payment. A unique key refuses a second refund of it.
func (s *Store) oweRefund(ctx context.Context, tx *session, money *paymentRow, reason string, now time.Time) error {
	id, err := newID("RF", s.opt.Random)
	if err != nil {
		return err
	}
	refund := *money
	refund.ID, refund.Type, refund.Status, refund.Reason, refund.PaymentID = id, typeRefund, refundDue, reason, money.ID
	if err := insertPayment(ctx, tx, &refund, time.Time{}, now); err != nil {
		return err
	}
	return writeRefundEvent(ctx, tx, seckill.EventRefundRequired, &refund, now)
}

// oweApplied owes the refund of the payment that paid an order.
func (s *Store) oweApplied(ctx context.Context, tx *session, no string, now time.Time) error {
	applied, err := queryPayments(ctx, tx, sqlApplied, no)
	if err != nil {
		return err
	}
	if len(applied) != 1 {
		return fmt.Errorf("order %s is paid by %d payments, not one", no, len(applied))
	}
	return s.oweRefund(ctx, tx, &applied[0], refundOperator, now)
}

func (s *Store) RefundsDue(ctx context.Context, limit int) ([]store.Payment, error) {
	return s.listPayments(ctx, sqlRefundsDue, millis(s.now()), limit)
}

func (s *Store) Payments(ctx context.Context, filter store.PaymentFilter) ([]store.Payment, error) {
	before, err := s.paymentBefore(ctx, filter.Before)
	if err != nil {
		return nil, err
	}
	var all []store.Payment
	for _, kind := range [...]string{typeRefund, typePayment} {
		if filter.Type != "" && filter.Type != kind {
			continue
		}
		query, args := s.dialect.pageOfPayments(&filter, kind, &before)
		some, err := s.listPayments(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b store.Payment) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Type, a.Type), cmp.Compare(b.ID, a.ID))
	})
	return all[:min(len(all), filter.Limit)], nil
}

// paymentBefore reads the payment that a page follows, if an id is given.
func (s *Store) paymentBefore(ctx context.Context, id string) (before store.Payment, err error) {
	if id == "" {
		return before, nil
	}
	found, err := s.listPayments(ctx, sqlPayments+`id = ?`, id)
	if err == nil && len(found) == 0 {
		err = seckill.Errorf(seckill.CodeNotFound, "before: no payment %q", id)
	}
	if err != nil {
		return before, err
	}
	return found[0], nil
}

// pageOfPayments returns the query for a page of one type, and its arguments. It reads an index
// in the order of the page.
func (d *dialect) pageOfPayments(filter *store.PaymentFilter, kind string, before *store.Payment) (string, []any) {
	var where conditions
	where.add("type = ?", kind)
	index := "ix_payment_type"
	if filter.ProductID != 0 || filter.OfNone {
		index = "ix_payment_product"
		where.add("product_id = ?", filter.ProductID)
	}
	if filter.OrderNo != "" { // an order has few payments
		index = "ix_payment_order"
		where.add("order_no = ?", filter.OrderNo)
	}
	if filter.NoTests {
		where.add("product_id NOT IN (" + testProducts + ")")
	}
	at := millis(before.CreatedAt)
	switch {
	case before.ID == "":
	case kind == before.Type:
		where.add("create_time <= ? AND (create_time < ? OR id < ?)", at, at, before.ID)
	case kind < before.Type: // within one millisecond refunds come first
		where.add("create_time <= ?", at)
	default:
		where.add("create_time < ?", at)
	}
	return sqlPaymentsBy + d.by(index) + where.text() + " ORDER BY create_time DESC, id DESC LIMIT ?", where.with(filter.Limit)
}

func (s *Store) RefundDone(ctx context.Context, id string) error {
	return s.changeRefund(ctx, id, func(ctx context.Context, tx *session) error {
		now := s.now()
		n, err := tx.exec(ctx, sqlRefundDone, millis(now), id)
		if err != nil || n == 0 { // it was settled before
			return err
		}
		refund, err := queryPayments(ctx, tx, sqlRefund, id)
		if err != nil || len(refund) == 0 {
			return err
		}
		return writeRefundEvent(ctx, tx, seckill.EventRefundSettled, &refund[0], now)
	})
}

func (s *Store) RefundFailed(ctx context.Context, id, reason string, delay time.Duration) error {
	return s.changeRefund(ctx, id, func(ctx context.Context, tx *session) error {
		status, next := refundDue, any(millis(s.now().Add(delay)))
		if delay < 0 {
			status, next = refundFailed, nil
		}
		_, err := tx.exec(ctx, sqlRefundFailed, status, reason, next, id)
		return err
	})
}

func (s *Store) changeRefund(ctx context.Context, id string, fn func(ctx context.Context, tx *session) error) error {
	return s.change(ctx, "repay", func(ctx context.Context, tx *session) error {
		known, err := tx.row(ctx, sqlRefundKnown, []any{id}, new(int))
		if err != nil {
			return err
		}
		if !known {
			return seckill.Errorf(seckill.CodeNotFound, "no refund %q", id)
		}
		return fn(ctx, tx)
	})
}
