package storesql

import (
	"context"
	"time"
)

const (
	sqlUse    = `SELECT outcome, until_time FROM tb_spent WHERE id = ?`
	sqlAddUse = `INSERT INTO tb_spent (id, outcome, until_time) VALUES (?, ?, ?)`
	// sqlRenewUse takes the row of a use that ended, until the last argument, and
	// was not swept yet.
	sqlRenewUse  = `UPDATE tb_spent SET outcome = ?, until_time = ? WHERE id = ? AND until_time <= ?`
	sqlEndedUses = `SELECT id FROM tb_spent WHERE until_time <= ? ORDER BY until_time LIMIT ?`
)

// deleteUses asks for the end again: a use that ended may have been made anew
// since it was listed.
var deleteUses = list{head: `DELETE FROM tb_spent WHERE until_time <= ? AND id IN (`, tail: `)`, columns: 1}

// Use remembers a use of key with its outcome for life, by the store's clock,
// unless one is remembered: then that one's outcome stands.
func (s *Store) Use(ctx context.Context, key [16]byte, outcome byte, life time.Duration) (standing byte, first bool, err error) {
	err = s.change(ctx, "spend", func(ctx context.Context, tx *session) (err error) {
		standing, first, err = use(ctx, tx, key[:], outcome, s.now(), life)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return standing, first, nil
}

// use looks, and writes where there is nothing to see. Of those who write at
// once the primary key lets one through; the others look again.
func use(ctx context.Context, tx *session, key []byte, outcome byte, at time.Time, life time.Duration) (standing byte, first bool, err error) {
	now, end := millis(at), millis(at.Add(life))
	var until int64
	found, err := tx.row(ctx, sqlUse, []any{key}, &standing, &until)
	switch {
	case err != nil:
		return 0, false, err
	case found && until > now:
		return standing, false, nil
	case !found:
		_, err := tx.exec(ctx, sqlAddUse, key, int64(outcome), end)
		return outcome, true, err
	}
	return outcome, true, compared(tx.exec(ctx, sqlRenewUse, int64(outcome), end, key, now))
}

// ForgetUses drops up to limit uses that have ended, and says how many.
func (s *Store) ForgetUses(ctx context.Context, limit int) (int, error) {
	now := millis(s.now())
	ended, err := listed(ctx, s, "forget uses", sqlEndedUses, []any{now, limit}, scanValue[[]byte])
	if err != nil || len(ended) == 0 {
		return 0, err
	}
	return changed(ctx, s, "forget uses", func(ctx context.Context, tx *session) (int, error) {
		forgotten, err := tx.execRows(ctx, deleteUses, []any{now}, anys(ended))
		return int(forgotten), err
	})
}
