package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

const (
	// Counted order by order: to join and group a million orders would sort them.
	sqlOrdersUnpaid = `SELECT o.order_no, o.price_cents * o.quantity, o.currency, (` + sqlCountApplied + `), (` + sqlCountExact + `)
		FROM tb_seckill_order o WHERE o.product_id = ? AND o.status IN (1, 4)
		AND ((` + sqlCountApplied + `) <> 1 OR (` + sqlCountExact + `) <> 1) LIMIT ?`
	sqlCountApplied = `SELECT COUNT(*) FROM tb_payment p WHERE p.order_no = o.order_no AND p.type = 'payment' AND p.status = 'applied'`
	sqlCountExact   = sqlCountApplied + ` AND p.amount_cents = o.price_cents * o.quantity AND p.currency = o.currency`

	// Money is looked for under its product. What lies under another one than its
	// order is met from the order, and a refund from its payment.
	sqlPaymentsElsewhere = `SELECT p.id, p.order_no, o.product_id, p.product_id FROM tb_seckill_order o
		JOIN tb_payment p ON p.order_no = o.order_no
		WHERE o.product_id = ? AND p.product_id <> o.product_id AND p.type <> 'refund' LIMIT ?`

	sqlPaymentsWrong = `SELECT p.id, p.order_no, p.product_id, o.product_id, o.status
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no WHERE p.product_id = ? AND p.type = 'payment'
		AND (o.product_id <> p.product_id OR p.status = 'applied' AND (o.status IS NULL OR o.status NOT IN (1, 4))) LIMIT ?`

	// Excess money and that of a refunded order go back once; that of a paid
	// order stays. A payment has one refund at most: the database sees to that.
	sqlRefundsMissing = `SELECT p.id, p.order_no, p.status, p.product_id, r.id, r.product_id
		FROM tb_payment p LEFT JOIN tb_seckill_order o ON o.order_no = p.order_no LEFT JOIN tb_payment r ON r.payment_id = p.id
		WHERE p.product_id = ? AND p.type = 'payment' AND (r.id IS NULL AND (p.status = 'excess' OR o.status = 4)
		OR r.id IS NOT NULL AND p.status = 'applied' AND o.status = 1 OR r.product_id <> p.product_id) LIMIT ?`

	// All of a payment goes back, by the trade that brought it.
	sqlSameMoney = `r.order_no = p.order_no AND r.product_id = p.product_id AND r.provider = p.provider AND r.trade_no = p.trade_no
		AND r.amount_cents = p.amount_cents AND r.currency = p.currency`

	sqlRefundsWrong = `SELECT r.id, r.payment_id, r.order_no, r.product_id, r.provider, r.trade_no, r.amount_cents, r.currency,
		p.order_no, p.product_id, p.provider, p.trade_no, p.amount_cents, p.currency
		FROM tb_payment r LEFT JOIN tb_payment p ON p.id = r.payment_id AND p.type = 'payment'
		WHERE r.product_id = ? AND r.type = 'refund' AND (p.id IS NULL OR NOT (` + sqlSameMoney + `)) LIMIT ?`

	// What the engine itself makes of a row's state. Anything else no duty takes
	// up, or one took up what never happened. A refund that was given up is
	// sound, and a finding all the same.
	sqlStatesWrong = `SELECT id, order_no, type, status, amount_cents, currency, last_error FROM tb_payment
		WHERE product_id = ? AND NOT (type = 'payment' AND status IN ('applied', 'excess')
			AND payment_id IS NULL AND next_time IS NULL AND done_time IS NULL
		OR type = 'refund' AND status = 'due' AND next_time IS NOT NULL AND next_time <= ? AND done_time IS NULL
		OR type = 'refund' AND status = 'done' AND next_time IS NULL AND done_time IS NOT NULL) LIMIT ?`
)

// CheckMoney compares the product's orders with its payments (I8).
func (s *Store) CheckMoney(ctx context.Context, id uint32, limit int) ([]store.Finding, error) {
	walks := []struct {
		query string
		args  []any
		each  func(scanner, *findings) error
	}{
		{sqlOrdersUnpaid, []any{id}, findUnpaid},
		{sqlPaymentsElsewhere, []any{id}, findElsewhere},
		{sqlPaymentsWrong, []any{id}, findMisapplied},
		{sqlRefundsMissing, []any{id}, findUnrefunded},
		{sqlRefundsWrong, []any{id}, findOtherMoney},
		{sqlStatesWrong, []any{id, s.refundHorizon()}, findUnmoved},
	}
	return s.check(ctx, "check money", limit, func(ctx context.Context, r *session, f *findings) error {
		for _, walk := range walks {
			// One row more than there is room for ends the walk.
			args := append(walk.args, limit-len(f.list)+1)
			if err := r.query(ctx, walk.query, args, func(row scanner) error { return walk.each(row, f) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// refundHorizon is the last instant for which a try at a refund can be noted.
func (s *Store) refundHorizon() int64 { return millis(s.now().Add(store.RefundDelayMost)) }

func findUnpaid(row scanner, f *findings) error {
	var no, currency string
	var amount, count, exact int64
	if err := row.Scan(&no, &amount, &currency, &count, &exact); err != nil {
		return err
	}
	return f.add(fmt.Sprintf("one payment of %d %s", amount, currency), fmt.Sprintf("%d payments, %d exact", count, exact), "order %s", no)
}

func findElsewhere(row scanner, f *findings) error {
	var id, no string
	var of, under uint32
	if err := row.Scan(&id, &no, &of, &under); err != nil {
		return err
	}
	return f.addElsewhere(of, under, "payment %s of order %s", id, no)
}

// addElsewhere is money of one product that is recorded under another.
func (f *findings) addElsewhere(of, under uint32, format string, args ...any) error {
	return f.add(fmt.Sprintf("under product %d", of), fmt.Sprintf("under product %d", under), format, args...)
}

func findMisapplied(row scanner, f *findings) error {
	var id, no string
	var under uint32
	var of *uint32
	var status *seckill.OrderStatus
	if err := row.Scan(&id, &no, &under, &of, &status); err != nil {
		return err
	}
	if of != nil && *of != under {
		return f.addElsewhere(*of, under, "payment %s of order %s", id, no)
	}
	return f.add("a paid or refunded order", statusName(status), "payment %s is applied to order %s", id, no)
}

func findUnrefunded(row scanner, f *findings) error {
	var id, no, status string
	var of uint32
	var refund *string
	var under *uint32
	if err := row.Scan(&id, &no, &status, &of, &refund, &under); err != nil {
		return err
	}
	switch {
	case refund == nil:
		return f.add("a refund", "none", "payment %s (%s) of order %s", id, status, no)
	case *under != of:
		return f.addElsewhere(of, *under, "refund %s of order %s", *refund, no)
	}
	return f.add("no refund", "refund "+*refund, "payment %s (%s) of order %s", id, status, no)
}

// movement is what a payment and its refund have to say alike.
type movement struct {
	order, provider, trade, currency *string
	product                          *uint32
	cents                            *int64
}

func (m *movement) into() []any {
	return []any{&m.order, &m.product, &m.provider, &m.trade, &m.cents, &m.currency}
}

func (m *movement) String() string {
	if m.order == nil {
		return "a payment"
	}
	return fmt.Sprintf("%d %s for order %s of product %d, %s trade %s", *m.cents, *m.currency, *m.order, *m.product, *m.provider, *m.trade)
}

func findOtherMoney(row scanner, f *findings) error {
	var id, payment string
	var back, paid movement
	into := append([]any{&id, text{&payment}}, back.into()...)
	if err := row.Scan(append(into, paid.into()...)...); err != nil {
		return err
	}
	return f.add(&paid, &back, "refund %s of payment %q", id, payment)
}

func findUnmoved(row scanner, f *findings) error {
	var id, no, kind, status, currency, reason string
	var amount int64
	if err := row.Scan(&id, &no, &kind, &status, &amount, &currency, &reason); err != nil {
		return err
	}
	var expected, found string
	switch kind + " " + status {
	case typeRefund + " " + refundFailed:
		return f.add(fmt.Sprintf("%d %s returned", amount, currency), "given up", "refund %s of order %s: %s", id, no, reason)
	case typeRefund + " " + refundDue:
		expected, found = "a time at which it is tried", "none, or one that does not come"
	case typeRefund + " " + refundDone:
		expected, found = "the time at which it was done", "none, or one at which it is tried"
	case typePayment + " " + moneyApplied, typePayment + " " + moneyExcess:
		expected, found = "a payment alone", "what only a refund has"
	default:
		expected, found = "what the engine makes", kind+" "+status
	}
	return f.add(expected, found, "%s %s of order %s", kind, id, no)
}
