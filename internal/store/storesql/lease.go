package storesql

import (
	"context"
	"time"
)

const (
	// pingLease is the lease whose row ping writes.
	pingLease = "ping"

	// A lease counts while its end lies between the two times given.
	sqlLeaseHeld = `SELECT 1 FROM tb_lease WHERE name = ? AND holder <> ? AND until_time > ? AND until_time <= ?`
	// sqlRenewLease takes name, holder and end, if holder has the lease or it does not count
	// any more. sqlTakeLease takes a lease that has no row yet.
	sqlRenewLease = `UPDATE tb_lease SET holder = ?, until_time = ? WHERE name = ? AND (holder = ? OR until_time <= ? OR until_time > ?)`
	sqlTakeLease  = `INSERT INTO tb_lease (name, holder, until_time) SELECT ?, ?, ? FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_lease WHERE name = ?)`
	sqlLeaseHolder  = `SELECT holder FROM tb_lease WHERE name = ?`
	sqlReleaseLease = `DELETE FROM tb_lease WHERE name = ? AND holder = ?`
)

// leaseAhead bounds the end of a lease, in multiples of the ttl that the caller asks for. All
// holders of a lease ask for the same ttl. A lease that ends later was given before the clock
// was set back: its holder may be dead, and would keep it for the whole step. The second ttl
// allows for instances whose clocks differ, and for a program of another version.
const leaseAhead = 2

func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (has bool, err error) {
	// Candidates for a lease ask often. This read saves them the write.
	held, now := false, s.now()
	err = s.read(ctx, "lease", func(ctx context.Context, r *session) (err error) {
		held, err = r.row(ctx, sqlLeaseHeld, []any{name, holder, millis(now), millis(now.Add(leaseAhead * ttl))}, new(int))
		return err
	})
	if err != nil || held {
		return false, err
	}
	err = s.change(ctx, "lease", func(ctx context.Context, tx *session) (err error) {
		now := s.now()
		has, err = acquireLease(ctx, tx, name, holder, millis(now.Add(ttl)), millis(now), millis(now.Add(leaseAhead*ttl)))
		return err
	})
	return has && err == nil, err
}

func acquireLease(ctx context.Context, tx *session, name, holder string, until, now, most int64) (bool, error) {
	n, err := tx.exec(ctx, sqlRenewLease, holder, until, name, holder, now, most)
	if err != nil || n == 1 {
		return n == 1, err
	}
	n, err = tx.exec(ctx, sqlTakeLease, name, holder, until, name)
	return n == 1, err
}

// LeaseHolder returns the last holder of a lease, also if it has ended; "" if it was never
// taken.
func (s *Store) LeaseHolder(ctx context.Context, name string) (holder string, err error) {
	err = s.read(ctx, "read the lease's holder", func(ctx context.Context, r *session) error {
		_, err := r.row(ctx, sqlLeaseHolder, []any{name}, &holder)
		return err
	})
	return holder, err
}

func (s *Store) ReleaseLease(ctx context.Context, name, holder string) error {
	return s.change(ctx, "lease", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlReleaseLease, name, holder)
		return err
	})
}
