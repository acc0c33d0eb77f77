package storesql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"seckill/internal/alert"
	"seckill/internal/store"
)

// Due rows of many products are settled by one transaction per product. That transaction may
// fail because another session holds the product's row, the product is gone, or a row cannot be
// read. Then the product is logged and passed over, so that it does not block the others. It
// does not count against the limit. The next call tries it again.

// maxHeldUp bounds the products that one call passes over. If there are more, the whole store
// is probably damaged, and the call fails.
const maxHeldUp = 100

// due is a kind of rows that are settled at a certain time. Before a product is settled, only
// the product id and the key of its rows are read.
type due[K any] struct {
	table string
	// list reads at most room rows, without those of the excepted products.
	list func(ctx context.Context, except []uint32, room int) ([]dueRow[K], error)
	// settle is one transaction for rows of one product. The rows may have changed since they
	// were listed.
	settle func(ctx context.Context, product uint32, keys []K) error
}

type dueRow[K any] struct {
	product uint32
	key     K
}

func scanDue[K any](row scanner, d *dueRow[K]) error { return row.Scan(&d.product, &d.key) }

// settleDue settles at most limit rows.
func settleDue[K any](ctx context.Context, s *Store, d *due[K], limit int) error {
	var except []uint32
	for room := limit; room > 0; {
		rows, err := d.list(ctx, except, room)
		if err != nil {
			return err
		}
		before := len(except)
		byProduct := make(map[uint32][]K)
		for _, row := range rows {
			byProduct[row.product] = append(byProduct[row.product], row.key)
		}
		for _, product := range slices.Sorted(maps.Keys(byProduct)) {
			err := d.settle(ctx, product, byProduct[product])
			switch {
			case err == nil:
				room -= len(byProduct[product])
			case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked):
				return err // every other product would meet it too
			default:
				except = append(except, product)
				s.throttled.Say(slog.LevelWarn, fmt.Sprint("due ", d.table, " ", product), "a product was passed over: its due rows cannot be settled",
					"table", d.table, "product_id", product, "error", alert.Clip(err.Error()))
			}
		}
		switch {
		case len(except) == before: // no product was passed over, so there are no more rows
			return nil
		case len(except) > maxHeldUp:
			return fmt.Errorf("rows of %d products of %s cannot be settled", len(except), d.table)
		}
	}
	return nil
}
