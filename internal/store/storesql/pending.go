package storesql

import (
	"context"
	"fmt"
)

// Pending reports whether Migrate has something to do. It changes nothing that
// matters: where no migration was ever run, the table that counts them may be
// made.
func (s *Store) Pending(ctx context.Context) (bool, error) {
	ctx, cancel := bounded(ctx, s.opt.Timeout)
	defer cancel()
	pending, err := s.db.pending(ctx)
	if err != nil {
		return false, fmt.Errorf("look for pending migrations: %w", err)
	}
	return pending, nil
}
