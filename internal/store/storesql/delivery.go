package storesql

import (
	"context"
	"slices"
	"strconv"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	sqlDeliveredFrom = `SELECT event_id FROM tb_sink_delivery WHERE sink = ? AND event_id > ? ORDER BY event_id LIMIT ?`

	deliveryColumns = `sink, event_id, delivery_key, event, message_id, event_time, state, attempts, last_status, latency_ms,
		last_error, first_time, last_time, next_time`
	sqlDelivery      = `SELECT ` + deliveryColumns + `, NULL FROM tb_sink_delivery WHERE sink = ? AND event_id = ?`
	sqlDeliveries    = `SELECT ` + deliveryColumns + `, NULL FROM tb_sink_delivery WHERE `
	sqlDeliveriesDue = `SELECT ` + deliveryColumns + `, body FROM tb_sink_delivery
		WHERE sink = ? AND state = 1 AND next_time <= ? ORDER BY next_time, event_id LIMIT ?`

	sqlHasten    = `UPDATE tb_sink_delivery SET next_time = ? WHERE sink = ? AND state = 1 AND next_time > ? AND first_time >= ?`
	sqlRetryable = `SELECT event_id, delivery_key FROM tb_sink_delivery WHERE sink = ? AND event_id > ? AND state IN (1, 3) ORDER BY event_id LIMIT ?`
	sqlSkippable = `SELECT event_id, delivery_key FROM tb_sink_delivery WHERE sink = ? AND event_id > ? AND state = 3 ORDER BY event_id LIMIT ?`
	sqlSweepable = `SELECT event_id FROM tb_sink_delivery WHERE sink = ? AND event_id < ? AND state IN (4, 5) ORDER BY event_id LIMIT ?`
)

// partSize is how many deliveries one transaction of an operator changes.
const partSize = 2000

var (
	sqlOpenKeys = list{
		head: `SELECT DISTINCT delivery_key FROM tb_sink_delivery WHERE sink = ? AND state IN (1, 2, 3) AND delivery_key IN (`,
		tail: `)`, columns: 1,
	}
	sqlLines = list{
		head: `SELECT delivery_key, event_id, state FROM tb_sink_delivery WHERE sink = ? AND state IN (1, 2, 3) AND delivery_key IN (`,
		tail: `)`, columns: 1,
	}
	sqlMakeDue = list{
		head: `UPDATE tb_sink_delivery SET state = 1, next_time = ? WHERE sink = ? AND event_id IN (`, tail: `)`, columns: 1,
	}
	sqlRetryDeliveries = list{
		head: `UPDATE tb_sink_delivery SET state = 1, attempts = 0, first_time = NULL, next_time = ? WHERE sink = ? AND event_id IN (`,
		tail: `)`, columns: 1,
	}
	sqlSkipDeliveries = list{
		head: `UPDATE tb_sink_delivery SET state = 5, body = NULL, next_time = NULL WHERE sink = ? AND event_id IN (`,
		tail: `)`, columns: 1,
	}
	sqlForgetDeliveries = list{
		head: `DELETE FROM tb_sink_delivery WHERE sink = ? AND event_id IN (`, tail: `)`, columns: 1,
	}
)

func (s *Store) SettleDeliveries(ctx context.Context, sink string, term, cursor int64, done []store.Delivery) error {
	rows := make([]any, 0, len(done)*s.dialect.settle.columns)
	var keys []string
	for i := range done {
		d := &done[i]
		var body, next any
		if d.State.Open() {
			body = d.Body
		}
		if d.State == store.DeliveryRetrying {
			next = millis(d.NextAt)
		}
		rows = append(rows, sink, d.EventID, d.Key, string(d.Kind), d.MessageID, millis(d.EventAt), int(d.State), d.Attempts,
			d.Status, d.Latency.Milliseconds(), d.Error, nullMillis(d.FirstAt), millis(d.LastAt), next, body)
		if d.State == store.DeliveryWaiting || d.Kept && d.State == store.DeliveryDelivered {
			keys = append(keys, d.Key)
		}
	}
	return s.change(ctx, "settle deliveries", func(ctx context.Context, tx *session) error {
		state, err := s.sinkCursor(ctx, tx, sink, tx.dialect.forUpdate)
		switch {
		case err != nil:
			return err
		case state.Term != term:
			return store.ErrTerm
		}
		if _, err := tx.execRows(ctx, tx.dialect.settle, nil, rows); err != nil {
			return err
		}
		if cursor != state.Cursor {
			if _, err := tx.exec(ctx, sqlMoveSink, cursor, term, sink); err != nil {
				return err
			}
		}
		return makeDue(ctx, tx, sink, keys, s.now())
	})
}

// makeDue makes the first delivery of each key due, if it waits.
func makeDue(ctx context.Context, tx *session, sink string, keys []string, now time.Time) error {
	type first struct {
		event int64
		state store.DeliveryState
	}
	lines := make(map[string]first)
	err := tx.queryRows(ctx, sqlLines, []any{sink}, unique(keys), func(row scanner) error {
		var key string
		var f first
		if err := row.Scan(text{&key}, &f.event, &f.state); err != nil {
			return err
		}
		if known, ok := lines[key]; !ok || f.event < known.event {
			lines[key] = f
		}
		return nil
	})
	if err != nil {
		return err
	}
	var due []int64
	for _, f := range lines {
		if f.state == store.DeliveryWaiting {
			due = append(due, f.event)
		}
	}
	slices.Sort(due)
	_, err = tx.execRows(ctx, sqlMakeDue, []any{millis(now), sink}, anys(due))
	return err
}

func unique(keys []string) []any {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return anys(slices.Compact(sorted))
}

func anys[T any](values []T) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}

func (s *Store) DeliveredAfter(ctx context.Context, sink string, after int64, limit int) ([]int64, error) {
	return listed(ctx, s, "list deliveries", sqlDeliveredFrom, []any{sink, after, limit}, scanValue[int64])
}

func (s *Store) OpenKeys(ctx context.Context, sink string, keys []string) (open []string, err error) {
	err = s.read(ctx, "list deliveries", func(ctx context.Context, r *session) error {
		return r.queryRows(ctx, sqlOpenKeys, []any{sink}, unique(keys), appending(&open, scanValue[string]))
	})
	return open, err
}

func scanDelivery(row scanner, d *store.Delivery) error {
	var latency int64
	err := row.Scan(text{&d.Sink}, &d.EventID, text{&d.Key}, &d.Kind, text{&d.MessageID}, millisTime{&d.EventAt}, &d.State, &d.Attempts,
		text{&d.Status}, &latency, text{&d.Error}, millisTime{&d.FirstAt}, millisTime{&d.LastAt}, millisTime{&d.NextAt}, &d.Body)
	d.Latency, d.Kept = time.Duration(latency)*time.Millisecond, true
	return err
}

func (s *Store) listDeliveries(ctx context.Context, query string, args []any) ([]store.Delivery, error) {
	return listed(ctx, s, "list deliveries", query, args, scanDelivery)
}

func (s *Store) DeliveriesDue(ctx context.Context, sink string, by time.Time, limit int) ([]store.Delivery, error) {
	return s.listDeliveries(ctx, sqlDeliveriesDue, []any{sink, millis(by), limit})
}

func (s *Store) Deliveries(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	var where conditions
	where.add("sink = ?", filter.Sink)
	where.add("event_id > ?", filter.After)
	if filter.State != 0 {
		where.add("state = ?", int(filter.State))
	}
	if filter.Key != "" {
		where.add("delivery_key = ?", filter.Key)
	}
	if filter.MessageID != "" {
		where.add("message_id = ?", filter.MessageID)
	}
	if filter.Before != 0 {
		where.add("event_id < ?", filter.Before)
	}
	order := " ORDER BY event_id LIMIT ?"
	if filter.Newest {
		order = " ORDER BY event_id DESC LIMIT ?"
	}
	return s.listDeliveries(ctx, sqlDeliveries+where.text()+order, where.with(filter.Limit))
}

func (s *Store) HastenDeliveries(ctx context.Context, sink string, since time.Time) error {
	return s.change(ctx, "hasten deliveries", func(ctx context.Context, tx *session) error {
		now := millis(s.now())
		var first int64
		if !since.IsZero() {
			first = millis(since)
		}
		_, err := tx.exec(ctx, sqlHasten, now, sink, now, first)
		return err
	})
}

func (s *Store) SweepDeliveries(ctx context.Context, sink string, below int64, limit int) (swept int, err error) {
	old, err := listed(ctx, s, "sweep deliveries", sqlSweepable, []any{sink, below, limit}, scanValue[int64])
	if err != nil || len(old) == 0 {
		return 0, err
	}
	err = s.change(ctx, "sweep deliveries", func(ctx context.Context, tx *session) error {
		_, err := tx.execRows(ctx, sqlForgetDeliveries, []any{sink}, anys(old))
		return err
	})
	return len(old), err
}

// openDelivery reads a delivery that may be retried or skipped.
func openDelivery(ctx context.Context, tx *session, sink string, event int64) (d store.Delivery, err error) {
	d, found, err := selectOne(ctx, tx, sqlDelivery+tx.dialect.forUpdate, []any{sink, event}, scanDelivery)
	switch {
	case err != nil:
		return d, err
	case !found:
		return d, seckill.Errorf(seckill.CodeNotFound, "sink %q has no delivery %d", sink, event)
	case d.State != store.DeliveryFailed && d.State != store.DeliveryRetrying:
		return d, seckill.Errorf(seckill.CodeWrongState, "the delivery is %s", d.State)
	}
	return d, nil
}

func (s *Store) RetryDelivery(ctx context.Context, sink string, event int64, actor store.Actor) (d store.Delivery, err error) {
	err = s.change(ctx, "retry delivery", func(ctx context.Context, tx *session) error {
		now := s.now()
		if _, err := tx.exec(ctx, sqlAskSink, millis(now), sink); err != nil {
			return err
		}
		if d, err = openDelivery(ctx, tx, sink, event); err != nil {
			return err
		}
		if _, err := tx.execRows(ctx, sqlRetryDeliveries, []any{millis(now), sink}, []any{event}); err != nil {
			return err
		}
		d.State, d.Attempts, d.FirstAt, d.NextAt = store.DeliveryRetrying, 0, time.Time{}, now
		return writeAudit(ctx, tx, now, actor, "sink.retry", 0, "", sinkDetail(sink, event))
	})
	return d, err
}

func sinkDetail(sink string, event int64) string {
	return "sink " + sink + ", event " + strconv.FormatInt(event, 10)
}

func (s *Store) SkipDelivery(ctx context.Context, sink string, event int64, actor store.Actor) (d store.Delivery, err error) {
	err = s.change(ctx, "skip delivery", func(ctx context.Context, tx *session) error {
		now := s.now()
		state, err := s.sinkCursor(ctx, tx, sink, tx.dialect.forUpdate)
		if err != nil {
			return err
		}
		if d, err = openDelivery(ctx, tx, sink, event); err != nil {
			return err
		}
		if d.State == store.DeliveryRetrying {
			if _, err := tx.exec(ctx, sqlMoveSink, state.Cursor, state.Term+1, sink); err != nil {
				return err
			}
		}
		if _, err := tx.execRows(ctx, sqlSkipDeliveries, []any{sink}, []any{event}); err != nil {
			return err
		}
		if err := makeDue(ctx, tx, sink, []string{d.Key}, now); err != nil {
			return err
		}
		d.State, d.NextAt = store.DeliverySkipped, time.Time{}
		return writeAudit(ctx, tx, now, actor, "sink.skip", 0, "", sinkDetail(sink, event))
	})
	return d, err
}

func (s *Store) RetryDeliveries(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return s.inParts(ctx, sink, "sink.retry", sqlRetryable, actor, func(ctx context.Context, tx *session, some part, now time.Time) error {
		if _, err := tx.execRows(ctx, sqlRetryDeliveries, []any{millis(now), sink}, anys(some.events)); err != nil {
			return err
		}
		_, err := tx.exec(ctx, sqlAskSink, millis(now), sink)
		return err
	})
}

func (s *Store) SkipDeliveries(ctx context.Context, sink string, actor store.Actor) (int, error) {
	return s.inParts(ctx, sink, "sink.skip", sqlSkippable, actor, func(ctx context.Context, tx *session, some part, now time.Time) error {
		if _, err := tx.execRows(ctx, sqlSkipDeliveries, []any{sink}, anys(some.events)); err != nil {
			return err
		}
		return makeDue(ctx, tx, sink, some.keys, now)
	})
}

type part struct {
	events []int64
	keys   []string
}

// inParts changes the deliveries that query finds, ordered by event, at most partSize in a
// transaction. Each transaction writes an audit line with its number of deliveries.
func (s *Store) inParts(ctx context.Context, sink, action, query string, actor store.Actor,
	do func(ctx context.Context, tx *session, some part, now time.Time) error) (changed int, err error) {
	for after := int64(0); ; {
		var some part
		err = s.change(ctx, "change deliveries", func(ctx context.Context, tx *session) error {
			some = part{}
			now := s.now()
			if _, err := s.sinkCursor(ctx, tx, sink, tx.dialect.forUpdate); err != nil {
				return err
			}
			err := tx.query(ctx, query, []any{sink, after, partSize}, func(row scanner) error {
				var event int64
				var key string
				err := row.Scan(&event, text{&key})
				some.events, some.keys = append(some.events, event), append(some.keys, key)
				return err
			})
			if err != nil {
				return err
			}
			if len(some.events) > 0 {
				if err := do(ctx, tx, some, now); err != nil {
					return err
				}
			} else if changed > 0 {
				return nil
			}
			return writeAudit(ctx, tx, now, actor, action, 0, "", "sink "+sink+", "+strconv.Itoa(len(some.events))+" deliveries")
		})
		if changed += len(some.events); err != nil || len(some.events) < partSize {
			return changed, err
		}
		after = some.events[len(some.events)-1]
	}
}
