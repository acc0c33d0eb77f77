package storesql

import (
	"context"
	"log/slog"

	"seckill/internal/alert"
)

// listReadable lists what is owed to all products. A row that cannot be read,
// such as one whose order number was overwritten by hand, is left out and named
// in the log: it must not hold up what is owed to others.
func listReadable[T any](ctx context.Context, s *Store, name, query string, args []any, scan func(scanner, *T) error) (found []T, err error) {
	err = s.read(ctx, name, func(ctx context.Context, r *session) error {
		found = nil
		add := appending(&found, scan)
		return r.query(ctx, query, args, func(row scanner) error {
			err := add(row)
			if err == nil || ctx.Err() != nil { // then the row may be well
				return err
			}
			s.complaints.Say(slog.LevelWarn, name, name+": a row was left out, it cannot be read", "error", alert.Clip(err.Error()))
			return nil
		})
	})
	return found, err
}
