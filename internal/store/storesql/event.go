package storesql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"seckill"
)

// There are many order events, and they have no data of their own. writeEvents writes them by
// multi-row statements without the column data. There are few sale and refund events: each is
// one statement with its data.

var sqlInsertEvents = list{
	head:    `INSERT INTO tb_event (create_time, event, product_id, order_no, reason) VALUES `,
	columns: 5,
}

const (
	sqlInsertEvent = `INSERT INTO tb_event (create_time, event, product_id, order_no, reason, data) VALUES (?,?,?,?,?,?)`

	// sqlLastMove reads the type of the stock-log row that set the stock to its present value.
	sqlLastMove = `SELECT type FROM tb_stock_log WHERE product_id = ? AND seq = ?`
)

// writeEvents writes rows of sqlInsertEvents.
func writeEvents(ctx context.Context, tx *session, rows []any) error {
	if tx.dialect.batchedEvents {
		return writeBatch(ctx, tx, rows)
	}
	_, err := tx.execRows(ctx, sqlInsertEvents, nil, rows)
	return err
}

// writeOrderEvents writes one event of the given kind per order.
func writeOrderEvents(ctx context.Context, tx *session, kind seckill.EventKind, orders []seckill.Order, now time.Time) error {
	args := make([]any, 0, len(orders)*sqlInsertEvents.columns)
	for i := range orders {
		o := &orders[i]
		args = append(args, millis(now), string(kind), o.ProductID, o.OrderNo.String(), o.Reason)
	}
	return writeEvents(ctx, tx, args)
}

// writeEvent writes one event with its data. order is an order number or nil.
func writeEvent(ctx context.Context, tx *session, kind seckill.EventKind, product uint32, order any, reason string, data any, now time.Time) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode the data of %s: %w", kind, err)
	}
	row := []any{millis(now), string(kind), product, order, reason, string(text)}
	if tx.dialect.batchedEvents {
		return writeBatchOfOne(ctx, tx, row)
	}
	_, err = tx.exec(ctx, sqlInsertEvent, row...)
	return err
}

// writeSaleEvent writes a sale event with offered and stock of the product's row.
func writeSaleEvent(ctx context.Context, tx *session, p *productRow, kind seckill.EventKind, now time.Time) error {
	return writeEvent(ctx, tx, kind, p.ID, nil, "", seckill.SaleData{Offered: p.Offered, Stock: p.Stock}, now)
}

// writeCountedEvent writes a sale event with the units of the product's orders.
func writeCountedEvent(ctx context.Context, tx *session, p *productRow, kind seckill.EventKind, now time.Time) error {
	counted, err := tally(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	data := seckill.SaleData{Offered: p.Offered, Stock: p.Stock, Counted: &counted}
	if kind == seckill.EventSaleEnded {
		data.ReturnedUnits = &p.Stock
	}
	return writeEvent(ctx, tx, kind, p.ID, nil, "", data, now)
}

// wasSoldOut reports whether returning units must write sale.back_in_stock: the stock is 0, and
// a sale made it 0, not an operator. Sales write sale.sold_out in the transaction of their
// stock-log row, so the last row tells which it was. It reads nothing while there is stock, or
// after the end of the sale, when nobody can buy the units.
func wasSoldOut(ctx context.Context, tx *session, p *productRow) (bool, error) {
	if p.Stock != 0 || p.logSeq == 0 || p.ended || p.State == seckill.SaleEnded {
		return false, nil
	}
	var kind int
	_, err := tx.row(ctx, sqlLastMove, []any{p.ID, p.logSeq}, &kind)
	return kind == logSold, err
}

// writeRefundEvent writes refund.required or refund.settled. The provider's order number may
// not be one of ours: then the event has no order.
func writeRefundEvent(ctx context.Context, tx *session, kind seckill.EventKind, refund *paymentRow, now time.Time) error {
	var order any
	if no, err := seckill.ParseOrderNo(refund.OrderNo); err == nil {
		order = no.String()
	}
	return writeEvent(ctx, tx, kind, refund.product, order, refund.Reason, seckill.RefundData{
		ID: refund.ID, AmountCents: refund.AmountCents, Currency: refund.Currency,
		Provider: refund.Provider, TradeNo: refund.TradeNo, OrderNo: refund.OrderNo, Reason: refund.Reason,
	}, now)
}

// eventData scans the data of an event. NULL gives no data. A value that is not JSON, for
// example after an edit by hand, gives no data either, so that the feed does not stop there.
type eventData struct{ *json.RawMessage }

func (d eventData) Scan(value any) error {
	var data string
	if err := (text{&data}).Scan(value); err != nil {
		return err
	}
	*d.RawMessage = nil
	if json.Valid([]byte(data)) {
		*d.RawMessage = json.RawMessage(data)
	}
	return nil
}
