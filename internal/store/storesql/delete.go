package storesql

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/store"
)

// Rows of a deleted product go in parts, each a transaction. The product's own row goes last,
// and its id stays in tb_deleted_product.

const (
	// deleteOrders is how many orders one transaction deletes, with a few rows of
	// other tables each: about 20 ms of SQLite on a busy machine (BenchmarkDelete).
	deleteOrders = 200
	// numberedBefore is how many events get numbers before each part. It must exceed the events
	// that one part deletes.
	numberedBefore = 20 * deleteOrders

	sqlDeleting      = `SELECT ` + productColumns + ` FROM tb_seckill_product WHERE id = ? AND deleting = 1`
	sqlBeginDelete   = `UPDATE tb_seckill_product SET deleting = 1, version = version + 1 WHERE id = ?`
	sqlGroupOpen     = `SELECT id FROM tb_seckill_product WHERE limit_group = ? AND id <> ? AND deleting = 0 AND state <> ? LIMIT 1`
	sqlDeleted       = `INSERT INTO tb_deleted_product (id, create_time) VALUES (?, ?)`
	sqlRefundsOwed   = `SELECT status FROM tb_payment WHERE product_id = ? AND type = 'refund' AND status IN ('due', 'failed') ORDER BY status DESC LIMIT 1`
	sqlOrdersOf      = `SELECT order_no, user_id, quantity, status FROM tb_seckill_order WHERE product_id = ? LIMIT ?`
	sqlFirstLog      = `SELECT MIN(seq) FROM tb_stock_log WHERE product_id = ?`
	sqlDeleteLog     = `DELETE FROM tb_stock_log WHERE product_id = ? AND seq < ?`
	sqlWaitingOf     = `SELECT order_no FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = ? LIMIT ?`
	sqlBatchesOfSale = `SELECT DISTINCT batch_id FROM tb_event WHERE order_no IS NULL AND product_id = ?`
	sqlDeleteSale    = `DELETE FROM tb_event WHERE order_no IS NULL AND product_id = ?`

	// A refund that is due or failed stays, and so does its payment.
	sqlMoneyOf = `SELECT p.id, p.order_no FROM tb_payment p WHERE p.product_id = ? AND p.status NOT IN ('due', 'failed')
		AND NOT EXISTS (SELECT 1 FROM tb_payment r WHERE r.payment_id = p.id AND r.status <> 'done') LIMIT ?`
)

// sqlDeleteRest empties the tables that have few rows per product, and deletes the product's
// row.
var sqlDeleteRest = []string{
	`DELETE FROM tb_order_units WHERE product_id = ?`,
	`DELETE FROM tb_stock_change WHERE product_id = ?`,
	`DELETE FROM tb_takeover_ack WHERE product_id = ?`,
	`DELETE FROM tb_reconciliation WHERE product_id = ?`,
	`DELETE FROM tb_seckill_product WHERE id = ?`,
}

var (
	sqlDeleteOrders  = list{head: `DELETE FROM tb_seckill_order WHERE order_no IN (`, tail: `)`, columns: 1}
	sqlDeleteLetters = list{head: `DELETE FROM tb_dead_letter WHERE order_no IN (`, tail: `)`, columns: 1}
	sqlDeleteMoney   = list{head: `DELETE FROM tb_payment WHERE id IN (`, tail: `)`, columns: 1}
	sqlDeleteEvents  = list{head: `DELETE FROM tb_event WHERE order_no IN (`, tail: `)`, columns: 1}
	sqlBatchesOf     = list{head: `SELECT DISTINCT batch_id FROM tb_event WHERE order_no IN (`, tail: `)`, columns: 1}
	// sqlDropBatches deletes batches without events, which a reader of the feed would have to
	// skip one by one. A batch without a number stays: FeedEnd has counted its events, so their
	// numbers must not go to other events.
	sqlDropBatches = list{
		head: `DELETE FROM tb_event_batch WHERE last_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM tb_event e WHERE e.batch_id = tb_event_batch.id) AND id IN (`,
		tail: `)`, columns: 1,
	}
)

func (s *Store) BeginDelete(ctx context.Context, id uint32, actor store.Actor) (seckill.Product, error) {
	return changed(ctx, s, "delete", func(ctx context.Context, tx *session) (seckill.Product, error) {
		p, err := lockProduct(ctx, tx, id)
		if seckill.CodeNotFound.In(err) {
			begun, err := queryProduct(ctx, tx, sqlDeleting, id)
			return begun.Product, err
		}
		if err != nil {
			return p.Product, err
		}
		if err := checkDeletable(ctx, tx, &p.Product); err != nil {
			return p.Product, err
		}
		if _, err := tx.exec(ctx, sqlBeginDelete, id); err != nil {
			return p.Product, err
		}
		detail := fmt.Sprintf("test product %q, %d units offered", p.Name, p.Offered)
		return p.Product, writeAudit(ctx, tx, s.now(), actor, "product.delete", id, "", detail)
	})
}

// checkDeletable says why a product cannot be deleted now.
func checkDeletable(ctx context.Context, tx *session, p *seckill.Product) error {
	if err := p.CheckDelete(); err != nil {
		return err
	}
	shared, err := tx.row(ctx, sqlGroupShared, []any{p.ID, p.ID}, new(int))
	if err != nil {
		return err
	}
	if shared {
		return seckill.Errorf(seckill.CodeWrongState, "other products share the limit of product %d: delete them first", p.ID)
	}
	// The ledger drops the product's marks at once, but buyer records shrink in parts. A
	// purchase of another product of the group would fail by the limit in between.
	var open uint32
	found, err := tx.row(ctx, sqlGroupOpen, []any{p.Group, p.ID, seckill.SaleEnded}, &open)
	if err != nil {
		return err
	}
	if found {
		return seckill.Errorf(seckill.CodeWrongState, "product %d shares the limit of product %d and has not ended: end it first", open, p.ID)
	}
	var owed string
	if _, err := tx.row(ctx, sqlRefundsOwed, []any{p.ID}, &owed); err != nil {
		return err
	}
	switch owed {
	case refundDue:
		return seckill.Errorf(seckill.CodeBusy, "a refund of product %d is due; try again when it is made", p.ID)
	case refundFailed:
		return seckill.Errorf(seckill.CodeWrongState, "a refund of product %d needs care: see its payments", p.ID)
	}
	return nil
}

func (s *Store) DeleteSome(ctx context.Context, id uint32) (orders int, done bool, err error) {
	if s.dialect.batchedEvents {
		if err := s.numberBatches(ctx, numberedBefore); err != nil {
			return 0, false, err
		}
	}
	err = s.change(ctx, "delete some", func(ctx context.Context, tx *session) error {
		orders, done = 0, false
		p, err := queryProduct(ctx, tx, sqlDeleting+tx.dialect.forUpdate, id)
		if err != nil {
			return err
		}
		if err := lockRow(ctx, tx, p.Group); err != nil {
			return err
		}
		if orders, err = deleteSomeOrders(ctx, tx, &p.Product); err != nil || orders > 0 {
			return err
		}
		for _, some := range []func(context.Context, *session, uint32) (bool, error){deleteSomeLetters, deleteSomeMoney, deleteSomeLog} {
			if more, err := some(ctx, tx, id); err != nil || more {
				return err
			}
		}
		done = true
		return deleteRest(ctx, tx, id, s.now())
	})
	return orders, done && err == nil, err
}

func (s *Store) Deleted(ctx context.Context, id uint32) (bool, error) {
	var deleted int
	err := s.read(ctx, "read deletion", func(ctx context.Context, r *session) error {
		_, err := r.row(ctx, sqlIDTaken, []any{id, id}, &deleted)
		return err
	})
	return err == nil && deleted != 0, err
}

// deleteSomeOrders deletes orders and all rows with their numbers. The limit group shares buyer
// records, so the units of live orders are subtracted from them, as in a cancellation.
func deleteSomeOrders(ctx context.Context, tx *session, p *seckill.Product) (int, error) {
	var nos, units, buyers []any
	err := tx.query(ctx, sqlOrdersOf, []any{p.ID, deleteOrders}, func(row scanner) error {
		var no, buyer string
		var quantity int64
		var status seckill.OrderStatus
		if err := row.Scan(&no, &buyer, &quantity, &status); err != nil {
			return err
		}
		nos = append(nos, no)
		if status.Live() {
			units, buyers = append(units, p.Group, buyerBytes(buyer), no, -quantity), append(buyers, buyerBytes(buyer))
		}
		return nil
	})
	if err != nil || len(nos) == 0 {
		return 0, err
	}
	if err := deleteEvents(ctx, tx, nos); err != nil {
		return 0, err
	}
	for _, l := range []list{sqlDeleteLetters, sqlDeleteOrders} {
		if _, err := tx.execRows(ctx, l, nil, nos); err != nil {
			return 0, err
		}
	}
	return len(nos), subtractUnits(ctx, tx, p.Group, units, buyers)
}

// deleteEvents deletes the events of orders, and batches that are empty then.
func deleteEvents(ctx context.Context, tx *session, nos []any) error {
	var batches []any
	if tx.dialect.batchedEvents {
		if err := tx.queryRows(ctx, sqlBatchesOf, nil, nos, appending(&batches, scanAny)); err != nil {
			return err
		}
	}
	if _, err := tx.execRows(ctx, sqlDeleteEvents, nil, nos); err != nil {
		return err
	}
	_, err := tx.execRows(ctx, sqlDropBatches, nil, batches)
	return err
}

func scanAny(row scanner, id *any) error {
	var n int64
	err := row.Scan(&n)
	*id = n
	return err
}

// deleteSomeLetters deletes letters whose claims have no order.
func deleteSomeLetters(ctx context.Context, tx *session, id uint32) (more bool, err error) {
	nos, err := selectAll(ctx, tx, sqlWaitingOf, []any{id, deleteOrders}, scanValue[string])
	if err == nil {
		_, err = tx.execRows(ctx, sqlDeleteLetters, nil, anys(nos))
	}
	return len(nos) > 0, err
}

// deleteSomeMoney deletes payments and settled refunds, and the events of money that names no
// order of ours.
func deleteSomeMoney(ctx context.Context, tx *session, id uint32) (more bool, err error) {
	var ids, nos []any
	err = tx.query(ctx, sqlMoneyOf, []any{id, deleteOrders}, func(row scanner) error {
		var id, no string
		err := row.Scan(&id, &no)
		ids, nos = append(ids, id), append(nos, no)
		return err
	})
	if err != nil || len(ids) == 0 {
		return false, err
	}
	if err := deleteEvents(ctx, tx, nos); err != nil {
		return false, err
	}
	_, err = tx.execRows(ctx, sqlDeleteMoney, nil, ids)
	return true, err
}

func deleteSomeLog(ctx context.Context, tx *session, id uint32) (more bool, err error) {
	var first *int64
	if _, err := tx.row(ctx, sqlFirstLog, []any{id}, &first); err != nil || first == nil {
		return false, err
	}
	_, err = tx.exec(ctx, sqlDeleteLog, id, *first+4*deleteOrders)
	return true, err
}

// deleteRest deletes the tables with few rows of the product, and ends the deletion.
func deleteRest(ctx context.Context, tx *session, id uint32, now time.Time) error {
	var batches []any
	if tx.dialect.batchedEvents {
		if err := tx.query(ctx, sqlBatchesOfSale, []any{id}, appending(&batches, scanAny)); err != nil {
			return err
		}
	}
	for _, query := range append([]string{sqlDeleteSale}, sqlDeleteRest...) {
		if _, err := tx.exec(ctx, query, id); err != nil {
			return err
		}
	}
	if _, err := tx.execRows(ctx, sqlDropBatches, nil, batches); err != nil {
		return err
	}
	_, err := tx.exec(ctx, sqlDeleted, id, millis(now))
	return err
}
