package background

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"seckill/test/virtual"
)

// held is a lease that another process keeps.
type held struct{}

func (held) AcquireLease(ctx context.Context, _, _ string, _ time.Duration) (bool, error) {
	return false, ctx.Err()
}
func (held) ReleaseLease(context.Context, string, string) error { return nil }
func (held) LeaseHolder(context.Context, string) (string, error) {
	return "memory other", nil
}

// The last try may begin as the time runs out. Its error must not hide that
// another ledger has the lease.
func TestSoleLedger_RefusalNamesTheOtherLedger(t *testing.T) {
	for range 16 { // the time and the last try come at the same instant: either may be first
		virtual.Test(t, func(t *testing.T) {
			s := &SoleLedger{leases: held{}, holder: "memory this", log: slog.New(slog.DiscardHandler)}
			if err := s.take(t.Context()); !errors.Is(err, ErrOtherLedger) {
				t.Errorf("the start was refused by: %v", err)
			}
		})
	}
}
