package storesql

import (
	"context"
	"log/slog"

	"seckill/internal/alert"
)

// listReadable lists rows of all products. A row that cannot be read, for example because its
// order number was overwritten by hand, is logged and left out, so that it does not block the
// others.
func listReadable[T any](ctx context.Context, s *Store, name, query string, args []any, scan func(scanner, *T) error) (found []T, err error) {
	err = s.read(ctx, name, func(ctx context.Context, r *session) error {
		found = nil
		add := appending(&found, scan)
		return r.query(ctx, query, args, func(row scanner) error {
			err := add(row)
			if err == nil || ctx.Err() != nil { // after such an error the row may be readable
				return err
			}
			s.throttled.Say(slog.LevelWarn, name, name+": a row cannot be read and was left out", "error", alert.Clip(err.Error()))
			return nil
		})
	})
	return found, err
}
