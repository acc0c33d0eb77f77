package storesql

import (
	"cmp"
	"context"
	"slices"

	"seckill"
)

// Events of a database with many writers get their numbers after the commit.
//
// AUTO_INCREMENT gives an id inside the transaction, and the row becomes visible when that
// transaction commits. A reader that has seen 12 may meet 11 later, and would skip it. If the
// transactions gave ids in the order of commits, the commits of all products would wait for
// each other.
//
// So a transaction writes its events as one batch without a number. The next reader of the feed
// numbers the committed batches, under a lock that only readers take. Batches that commit later
// get higher numbers. This costs one small update per transaction, not per event. An event's id
// is its place in its batch's range of numbers. Unnumbered batches are numbered in the order of
// their own ids. So if one transaction began after another's commit, it comes later in the feed
// too.

const (
	sqlInsertBatch = `INSERT INTO tb_event_batch (events) VALUES (?)`
	sqlInsertOnly  = `INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason, data) VALUES (?,0,?,?,?,?,?,?)`
	sqlAnyUnread   = `SELECT 1 FROM tb_event_batch WHERE last_id IS NULL LIMIT 1`
	// Without the hint the database may scan all numbered batches by id.
	sqlUnread      = `SELECT id, events FROM tb_event_batch FORCE INDEX (uk_event_batch_last) WHERE last_id IS NULL ORDER BY id LIMIT ?`
	sqlFeedEnd     = `SELECT last_id FROM tb_feed WHERE id = 1`
	sqlMoveFeedEnd = `UPDATE tb_feed SET last_id = ? WHERE id = 1`
	sqlBatches     = `SELECT id, events, last_id FROM tb_event_batch WHERE last_id > ? ORDER BY last_id LIMIT ?`

	// unreadBatches bounds the batches that one reader numbers at a time. A thousand rows take
	// some milliseconds.
	unreadBatches = 1000
)

var (
	sqlInsertBatched = list{
		head:    `INSERT INTO tb_event (batch_id, place, create_time, event, product_id, order_no, reason) VALUES `,
		columns: 7,
	}
	// sqlNumberBatches sets last_id of existing rows.
	sqlNumberBatches = list{
		head: `INSERT INTO tb_event_batch (id, events, last_id) VALUES `,
		tail: ` ON DUPLICATE KEY UPDATE last_id = VALUES(last_id)`, columns: 3,
	}
	sqlBatchEvents = list{
		head: `SELECT e.batch_id, e.place, e.create_time, e.event, e.product_id, e.order_no, e.reason, e.data,
			o.user_id, COALESCE(o.quantity, 0), COALESCE(o.price_cents * o.quantity, 0), o.currency, o.ref, ` + ofTest + `
			FROM tb_event e LEFT JOIN tb_seckill_order o ON o.order_no = e.order_no WHERE e.batch_id IN (`,
		tail: `) ORDER BY e.batch_id, e.place`, columns: 1,
	}
)

// writeBatch writes rows of sqlInsertEvents as one batch.
func writeBatch(ctx context.Context, tx *session, rows []any) error {
	const columns = 5
	if len(rows) == 0 {
		return nil
	}
	id, err := tx.insert(ctx, sqlInsertBatch, len(rows)/columns)
	if err != nil {
		return err
	}
	args := make([]any, 0, len(rows)/columns*sqlInsertBatched.columns)
	for place := 0; len(rows) > 0; place++ {
		args = append(append(args, id, place), rows[:columns]...)
		rows = rows[columns:]
	}
	_, err = tx.execRows(ctx, sqlInsertBatched, nil, args)
	return err
}

// writeBatchOfOne writes one row of sqlInsertEvent as a batch.
func writeBatchOfOne(ctx context.Context, tx *session, row []any) error {
	id, err := tx.insert(ctx, sqlInsertBatch, 1)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, sqlInsertOnly, append([]any{id}, row...)...)
	return err
}

// numberBatches numbers committed batches, until none is left or limit events have numbers.
func (s *Store) numberBatches(ctx context.Context, limit int) error {
	waiting := false
	err := s.read(ctx, "list events", func(ctx context.Context, r *session) (err error) {
		waiting, err = r.row(ctx, sqlAnyUnread, nil, new(int))
		return err
	})
	for numbered := 0; err == nil && waiting && numbered < limit; {
		var n int
		n, waiting, err = s.numberSome(ctx)
		numbered += n
	}
	return err
}

// numberSome numbers at most unreadBatches batches. It returns the number of their events, and
// whether there may be more batches.
func (s *Store) numberSome(ctx context.Context) (events int, more bool, err error) {
	err = s.change(ctx, "number", func(ctx context.Context, tx *session) error {
		var first, last int64
		if _, err := tx.row(ctx, sqlFeedEnd+tx.dialect.forUpdate, nil, &first); err != nil {
			return err
		}
		last = first
		var rows []any
		err := tx.query(ctx, sqlUnread, []any{unreadBatches}, func(row scanner) error {
			var id, events int64
			err := row.Scan(&id, &events)
			last += events
			rows = append(rows, id, events, last)
			return err
		})
		events, more = int(last-first), len(rows) == unreadBatches*sqlNumberBatches.columns
		if err != nil || len(rows) == 0 {
			return err
		}
		if _, err := tx.execRows(ctx, sqlNumberBatches, nil, rows); err != nil {
			return err
		}
		_, err = tx.exec(ctx, sqlMoveFeedEnd, last)
		return err
	})
	return events, more, err
}

// batchedEvents lists the events with ids above after. It skips batches whose events were
// deleted: otherwise the feed would stop there.
func (s *Store) batchedEvents(ctx context.Context, after int64, limit int) ([]seckill.Event, error) {
	if err := s.numberBatches(ctx, limit); err != nil {
		return nil, err
	}
	var events []seckill.Event
	err := s.snapshot(ctx, "list events", func(ctx context.Context, r *session) error {
		for len(events) == 0 {
			found, err := batchesAfter(ctx, r, after, limit)
			if err != nil || len(found.ids) == 0 {
				return err
			}
			err = r.queryRows(ctx, sqlBatchEvents, nil, found.ids, func(row scanner) error {
				var e seckill.Event
				var batch, place int64
				err := row.Scan(&batch, &place, millisTime{&e.At}, &e.Kind, &e.ProductID, nullOrderNo{&e.OrderNo}, &e.Reason, eventData{&e.Data},
					text{&e.Buyer}, &e.Quantity, &e.AmountCents, text{&e.Currency}, text{&e.Ref}, &e.Test)
				if e.ID = found.before[batch] + 1 + place; err == nil && e.ID > after {
					events = append(events, e)
				}
				return err
			})
			if err != nil {
				return err
			}
			after = found.last
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(events, func(a, b seckill.Event) int { return cmp.Compare(a.ID, b.ID) })
	return events[:min(len(events), max(limit, 0))], nil
}

// batchRange is some batches of the feed in order.
type batchRange struct {
	ids    []any
	before map[int64]int64 // the number before the first event of each batch
	last   int64           // the number of the last event
}

// batchesAfter finds the batches of the next limit events.
func batchesAfter(ctx context.Context, r *session, after int64, limit int) (batchRange, error) {
	s := batchRange{before: make(map[int64]int64)}
	var found int64
	err := r.query(ctx, sqlBatches, []any{after, limit}, func(row scanner) error {
		var id, events, last int64
		if err := row.Scan(&id, &events, &last); err != nil {
			return err
		}
		if found < int64(limit) {
			s.ids, s.before[id], s.last = append(s.ids, id), last-events, last
			found += last - max(after, last-events)
		}
		return nil
	})
	return s, err
}
