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

// What has become due is of many products, and is settled by one transaction
// per product. If that fails, because others hold the product's row, the product
// is gone or a row cannot be read, the product is passed over: it must not hold
// up what is due of others. It takes no place of the limit and is named in the
// log; the next call tries it again.

// maxHeldUp bounds how many products one call passes over. Where there are
// more, the store is damaged rather than a product, and the call fails.
const maxHeldUp = 100

// due is a kind of rows that are settled when their time has come. Only product
// and key are read of a row before its product is settled.
type due[K any] struct {
	table string
	// list reads at most room of them, none of the products that are excepted.
	list func(ctx context.Context, except []uint32, room int) ([]dueRow[K], error)
	// settle is one transaction over rows of one product, which may have changed
	// since they were listed.
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
				return err // it would be that of every other product too
			default:
				except = append(except, product)
				s.complaints.Say(slog.LevelWarn, fmt.Sprint("due ", d.table, " ", product), "a product was passed over: what is due of it cannot be settled",
					"table", d.table, "product_id", product, "error", alert.Clip(err.Error()))
			}
		}
		switch {
		case len(except) == before: // nothing stood in the way of more
			return nil
		case len(except) > maxHeldUp:
			return fmt.Errorf("rows of %d products of %s cannot be settled", len(except), d.table)
		}
	}
	return nil
}
