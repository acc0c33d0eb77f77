package storesql

import (
	"context"
	"time"
)

const (
	sqlLeaseHeld    = `SELECT 1 FROM tb_lease WHERE name = ? AND holder <> ? AND until_time > ?`
	sqlReleaseLease = `DELETE FROM tb_lease WHERE name = ? AND holder = ?`
)

// AcquireLease takes or renews a lease.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (has bool, err error) {
	// Those who wait for a lease ask often; a look spares them the write.
	held := false
	err = s.read(ctx, "lease", func(ctx context.Context, r *session) (err error) {
		held, err = r.row(ctx, sqlLeaseHeld, []any{name, holder, millis(s.now())}, new(int))
		return err
	})
	if err != nil || held {
		return false, err
	}
	err = s.change(ctx, "lease", func(ctx context.Context, tx *session) error {
		now := s.now()
		n, err := tx.exec(ctx, tx.dialect.acquireLease, name, holder, millis(now.Add(ttl)), millis(now))
		has = n == 1
		return err
	})
	return has && err == nil, err
}

// ReleaseLease gives a lease back, if holder has it.
func (s *Store) ReleaseLease(ctx context.Context, name, holder string) error {
	return s.change(ctx, "lease", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlReleaseLease, name, holder)
		return err
	})
}
