package storesql

import (
	"context"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	// testProducts are the ids of test products. It includes deleted ones, because money may
	// arrive later.
	testProducts = `SELECT id FROM tb_seckill_product WHERE test = 1 UNION ALL SELECT id FROM tb_deleted_product`
	// ofTest is whether an event's product is a test product.
	ofTest = `(EXISTS (SELECT 1 FROM tb_seckill_product p WHERE p.id = e.product_id AND p.test = 1)
		OR EXISTS (SELECT 1 FROM tb_deleted_product d WHERE d.id = e.product_id))`

	sqlEvents = `SELECT e.id, e.create_time, e.event, e.product_id, e.order_no, e.reason, e.data,
		o.user_id, COALESCE(o.quantity, 0), COALESCE(o.price_cents * o.quantity, 0), o.currency, o.ref, ` + ofTest + `
		FROM tb_event e LEFT JOIN tb_seckill_order o ON o.order_no = e.order_no
		WHERE e.id > ? ORDER BY e.id LIMIT ?`

	sqlInsertAudit = `INSERT INTO tb_audit (create_time, actor, action, product_id, order_no, reason, detail) VALUES (?,?,?,?,?,?,?)`

	sqlAudit = `SELECT id, create_time, actor, action, product_id, order_no, reason, detail FROM tb_audit`
)

// Events lists the events above an id.
//
// It skips no event. SQLite runs one write transaction at a time and gives ids inside it, so
// events become visible in the order of their ids. For a database with many writers see
// batch.go.
func (s *Store) Events(ctx context.Context, after int64, limit int) ([]seckill.Event, error) {
	if s.dialect.batchedEvents {
		return s.batchedEvents(ctx, after, limit)
	}
	return listed(ctx, s, "list events", sqlEvents, []any{after, limit}, scanEvent)
}

func scanEvent(row scanner, e *seckill.Event) error {
	return row.Scan(&e.ID, millisTime{&e.At}, &e.Kind, &e.ProductID, nullOrderNo{&e.OrderNo}, &e.Reason, eventData{&e.Data},
		text{&e.Buyer}, &e.Quantity, &e.AmountCents, text{&e.Currency}, text{&e.Ref}, &e.Test)
}

// writeAudit writes the audit line of an operator change. A change without an actor's name,
// such as expiry, is not an operator's.
func writeAudit(ctx context.Context, tx *session, now time.Time, actor store.Actor, action string, product uint32, order, detail string) error {
	if actor.Name == "" {
		return nil
	}
	_, err := tx.exec(ctx, sqlInsertAudit, millis(now), actor.Name, action, product, order, actor.Reason, detail)
	return err
}

// AppendAudit adds a line with the store's time.
func (s *Store) AppendAudit(ctx context.Context, line store.AuditLine) error {
	return s.change(ctx, "audit", func(ctx context.Context, tx *session) error {
		actor := store.Actor{Name: line.Actor, Reason: line.Reason}
		if actor.Name == "" {
			return seckill.Errorf(seckill.CodeBadRequest, "an audit line needs an actor")
		}
		return writeAudit(ctx, tx, s.now(), actor, line.Action, line.ProductID, line.OrderNo, line.Detail)
	})
}

func (s *Store) Audit(ctx context.Context, filter store.AuditFilter) ([]store.AuditLine, error) {
	query, args := s.dialect.pageOfAudit(&filter)
	return listed(ctx, s, "list audit", query, args, func(row scanner, l *store.AuditLine) error {
		return row.Scan(&l.ID, millisTime{&l.At}, &l.Actor, &l.Action, &l.ProductID, &l.OrderNo, &l.Reason, &l.Detail)
	})
}

func (d *dialect) pageOfAudit(filter *store.AuditFilter) (string, []any) {
	var where conditions
	index := ""
	if filter.ProductID != 0 {
		index = "ix_audit_product"
		where.add("product_id = ?", filter.ProductID)
	}
	if filter.OrderNo != "" {
		index = "ix_audit_order"
		where.add("order_no = ? AND order_no <> ''", filter.OrderNo) // the second condition lets the index of sqlStoryAudit serve
	}
	if filter.Before != 0 {
		where.add("id < ?", filter.Before)
	}
	return sqlAudit + d.by(index) + where.text() + " ORDER BY id DESC LIMIT ?", where.with(filter.Limit)
}
