// Package spentsql keeps a register in the store, for when there is no other
// place that instances share. A use is a committed row: it costs what a
// transaction costs, and whoever makes many bounds how many are made at once.
package spentsql

import (
	"context"
	"crypto/sha256"
	"time"

	"seckill/internal/spent"
)

// Bounds of a sweep. Rows go in small transactions, which keep nobody waiting;
// what is left after a round, the next one finds.
const (
	sweepRows    = 500
	sweepsAround = 200
)

// Table is where uses are rows, as *storesql.Store has them. A life is by the
// table's own clock, which instances share.
type Table interface {
	// Use remembers a use of key with its outcome, unless one is remembered: then
	// that one's outcome stands, and the use is not the first.
	Use(ctx context.Context, key [16]byte, outcome byte, life time.Duration) (standing byte, first bool, err error)
	// ForgetUses drops up to limit uses that have ended, and says how many.
	ForgetUses(ctx context.Context, limit int) (int, error)
}

// Register is a spent.Register. It is safe for concurrent use.
type Register struct {
	table Table
	now   func() time.Time
}

var _ spent.Register = (*Register)(nil)

// New makes the register of a table; now is the clock of the instants that uses
// end at.
func New(table Table, now func() time.Time) *Register { return &Register{table, now} }

// Spend is spent.Register's.
func (r *Register) Spend(ctx context.Context, id string, until time.Time) (bool, error) {
	_, first, err := r.use(ctx, id, 0, until)
	return first, err
}

// Settle is spent.Register's.
func (r *Register) Settle(ctx context.Context, id string, outcome spent.Outcome, until time.Time) (spent.Outcome, error) {
	standing, _, err := r.use(ctx, id, outcome, until)
	return standing, err
}

func (r *Register) use(ctx context.Context, id string, outcome spent.Outcome, until time.Time) (spent.Outcome, bool, error) {
	// The front of a digest has one size, whatever ids look like, and no two ids
	// of a lifetime share it.
	digest := sha256.Sum256([]byte(id))
	life := max(until.Sub(r.now()), spent.MinLife)
	standing, first, err := r.table.Use(ctx, [16]byte(digest[:16]), byte(outcome), life)
	return spent.Outcome(standing), first, err
}

// Sweep drops what has ended.
func (r *Register) Sweep(ctx context.Context) error {
	for range sweepsAround {
		if n, err := r.table.ForgetUses(ctx, sweepRows); err != nil || n < sweepRows {
			return err
		}
	}
	return nil
}
