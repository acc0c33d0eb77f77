package storesql

import (
	"context"

	"seckill"
	"seckill/internal/store"
)

const (
	sinkColumns = `name, last_event, term, create_time, down_time, retry_time`
	sqlSink     = `SELECT ` + sinkColumns + ` FROM tb_sink WHERE name = ?`
	sqlSinks    = `SELECT ` + sinkColumns + ` FROM tb_sink ORDER BY name`
	sqlAddSink  = `INSERT INTO tb_sink (name, last_event, term, create_time) VALUES (?, ?, 0, ?)`
	sqlSinkDown = `UPDATE tb_sink SET down_time = ? WHERE name = ? AND term = ?`
	sqlAskSink  = `UPDATE tb_sink SET retry_time = ? WHERE name = ?`
	sqlMoveSink = `UPDATE tb_sink SET last_event = ?, term = ? WHERE name = ?`

	sqlOpenDeliveries = `SELECT state, COUNT(*), COALESCE(MIN(next_time), 0), COALESCE(MIN(event_time), 0) FROM tb_sink_delivery
		WHERE sink = ? AND state IN (1, 2, 3) GROUP BY state`
	sqlSettledDeliveries = `SELECT state, COUNT(*) FROM tb_sink_delivery WHERE sink = ? AND state IN (4, 5) GROUP BY state`
	sqlLastError         = `SELECT last_error, last_time FROM tb_sink_delivery
		WHERE sink = ? AND state IN (1, 3) AND last_error <> '' ORDER BY last_time DESC LIMIT 1`

	// Not the highest id of tb_event, because the last events may have been deleted.
	sqlLastEvent    = `SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'tb_event'`
	sqlUnreadEvents = `SELECT COALESCE(SUM(events), 0) FROM tb_event_batch FORCE INDEX (uk_event_batch_last) WHERE last_id IS NULL`

	sqlForgetSink  = `DELETE FROM tb_sink WHERE name = ?`
	sqlForgetLater = `DELETE FROM tb_sink_delivery WHERE sink = ? AND event_id > ?`
)

func scanSink(row scanner, state *store.SinkState) error {
	return row.Scan(&state.Name, &state.Cursor, &state.Term, millisTime{&state.CreatedAt}, millisTime{&state.DownAt}, millisTime{&state.RetriedAt})
}

// sinkState reads the state of a sink, as this session sees it.
func (s *Store) sinkState(ctx context.Context, r *session, name, end string) (store.SinkState, error) {
	state, err := s.sinkCursor(ctx, r, name, end)
	if err != nil {
		return state, err
	}
	return state, s.readOpen(ctx, r, &state)
}

// sinkCursor is sinkState without the open deliveries.
func (s *Store) sinkCursor(ctx context.Context, r *session, name, end string) (state store.SinkState, err error) {
	state, found, err := selectOne(ctx, r, sqlSink+end, []any{name}, scanSink)
	if err == nil && !found {
		err = seckill.Errorf(seckill.CodeNotFound, "no sink %q", name)
	}
	state.At = s.now()
	return state, err
}

// readOpen counts the open deliveries of a sink.
func (s *Store) readOpen(ctx context.Context, r *session, state *store.SinkState) error {
	state.At, state.Count = s.now(), make(map[store.DeliveryState]int64)
	return r.query(ctx, sqlOpenDeliveries, []any{state.Name}, func(row scanner) error {
		var of store.DeliveryState
		var count, next, oldest int64
		if err := row.Scan(&of, &count, &next, &oldest); err != nil {
			return err
		}
		state.Count[of] = count
		if of == store.DeliveryRetrying {
			state.NextAt = fromMillis(next)
		}
		if at := fromMillis(oldest); state.OldestAt.IsZero() || at.Before(state.OldestAt) {
			state.OldestAt = at
		}
		return nil
	})
}

func (s *Store) OpenSink(ctx context.Context, name string, atEnd bool) (state store.SinkState, err error) {
	if state, err = s.SinkState(ctx, name); !seckill.CodeNotFound.In(err) {
		return state, err
	}
	var cursor int64
	if atEnd {
		if cursor, err = s.FeedEnd(ctx); err != nil {
			return state, err
		}
	}
	err = s.change(ctx, "open sink", func(ctx context.Context, tx *session) error {
		if _, err := s.sinkCursor(ctx, tx, name, ""); !seckill.CodeNotFound.In(err) {
			return err
		}
		_, err := tx.exec(ctx, sqlAddSink, name, cursor, millis(s.now()))
		return err
	})
	if err != nil {
		return state, err
	}
	return s.SinkState(ctx, name)
}

func (s *Store) SinkState(ctx context.Context, name string) (state store.SinkState, err error) {
	err = s.read(ctx, "read sink", func(ctx context.Context, r *session) (err error) {
		state, err = s.sinkState(ctx, r, name, "")
		return err
	})
	return state, err
}

func (s *Store) SinkCursor(ctx context.Context, name string) (state store.SinkState, err error) {
	err = s.read(ctx, "read sink", func(ctx context.Context, r *session) (err error) {
		state, err = s.sinkCursor(ctx, r, name, "")
		return err
	})
	return state, err
}

func (s *Store) SinkStates(ctx context.Context) (states []store.SinkState, err error) {
	err = s.snapshot(ctx, "list sinks", func(ctx context.Context, r *session) error {
		states, err = selectAll(ctx, r, sqlSinks, nil, scanSink)
		for i := range states {
			if err == nil {
				err = s.readAll(ctx, r, &states[i])
			}
		}
		return err
	})
	return states, err
}

// readAll counts all deliveries of a sink, and finds its last error.
func (s *Store) readAll(ctx context.Context, r *session, state *store.SinkState) error {
	if err := s.readOpen(ctx, r, state); err != nil {
		return err
	}
	err := r.query(ctx, sqlSettledDeliveries, []any{state.Name}, func(row scanner) error {
		var of store.DeliveryState
		var count int64
		err := row.Scan(&of, &count)
		state.Count[of] = count
		return err
	})
	if err != nil {
		return err
	}
	_, err = r.row(ctx, sqlLastError, []any{state.Name}, &state.LastError, millisTime{&state.LastErrorAt})
	return err
}

func (s *Store) TakeSink(ctx context.Context, name string) (store.SinkState, error) {
	return changed(ctx, s, "take sink", func(ctx context.Context, tx *session) (store.SinkState, error) {
		state, err := s.sinkState(ctx, tx, name, tx.dialect.forUpdate)
		if err != nil {
			return state, err
		}
		state.Term++
		_, err = tx.exec(ctx, sqlMoveSink, state.Cursor, state.Term, name)
		return state, err
	})
}

func (s *Store) SetSinkDown(ctx context.Context, name string, term int64, down bool) error {
	return s.change(ctx, "set sink down", func(ctx context.Context, tx *session) error {
		var since any
		if down {
			since = millis(s.now())
		}
		n, err := tx.exec(ctx, sqlSinkDown, since, name, term)
		if err == nil && n == 0 {
			return store.ErrTerm
		}
		return err
	})
}

func (s *Store) FeedEnd(ctx context.Context) (end int64, err error) {
	err = s.snapshot(ctx, "read the end of the feed", func(ctx context.Context, r *session) error {
		if !s.dialect.batchedEvents {
			_, err := r.row(ctx, sqlLastEvent, nil, &end)
			return err
		}
		var unread int64
		if _, err := r.row(ctx, sqlFeedEnd, nil, &end); err != nil {
			return err
		}
		_, err := r.row(ctx, sqlUnreadEvents, nil, &unread)
		end += unread
		return err
	})
	return end, err
}

func (s *Store) ReplaySink(ctx context.Context, sink string, after int64, actor store.Actor) (state store.SinkState, err error) {
	err = s.change(ctx, "replay sink", func(ctx context.Context, tx *session) error {
		if state, err = s.sinkState(ctx, tx, sink, tx.dialect.forUpdate); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, sqlForgetLater, sink, after); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, sqlMoveSink, min(after, state.Cursor), state.Term+1, sink); err != nil {
			return err
		}
		if err := writeAudit(ctx, tx, s.now(), actor, "sink.replay", 0, "", sinkDetail(sink, after)); err != nil {
			return err
		}
		state, err = s.sinkState(ctx, tx, sink, "")
		return err
	})
	return state, err
}

func (s *Store) ForgetSink(ctx context.Context, sink string, actor store.Actor) (forgotten int, err error) {
	for left := true; left; {
		some := 0
		err = s.change(ctx, "forget sink", func(ctx context.Context, tx *session) error {
			if _, err := s.sinkCursor(ctx, tx, sink, tx.dialect.forUpdate); err != nil {
				return err
			}
			ids, err := selectAll(ctx, tx, sqlDeliveredFrom, []any{sink, 0, partSize}, scanValue[int64])
			if some = len(ids); err != nil {
				return err
			}
			if _, err := tx.execRows(ctx, sqlForgetDeliveries, []any{sink}, anys(ids)); err != nil {
				return err
			}
			if left = some == partSize; left {
				return nil
			}
			if _, err := tx.exec(ctx, sqlForgetSink, sink); err != nil {
				return err
			}
			return writeAudit(ctx, tx, s.now(), actor, "sink.forget", 0, "", "sink "+sink)
		})
		if err != nil {
			return forgotten, err
		}
		forgotten += some
	}
	return forgotten, nil
}
