package storesql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"seckill"
	"seckill/internal/complaint"
	"seckill/internal/store"
)

// What has become due is of many products, and is settled by one transaction
// per product: what cannot be settled, because its product is gone or somebody
// altered a row, must not hold up what is due of others. It is passed over,
// takes no place of the limit, and is named in the log; the next call tries it
// again.

const (
	// maxHeldUp bounds how many products one call passes over. Where there are
	// more, the store is damaged rather than a product, and the call fails.
	maxHeldUp = 100
	// maxAlone bounds how many rows of a product one call tries alone in vain
	// before it passes over the rest of them. Each costs a transaction.
	maxAlone = 8
)

// due is a kind of rows that are settled when their time has come.
type due[T any] struct {
	table string
	of    func(row *T) (product uint32, no seckill.OrderNo)
	// list reads at most room of them, none of the products that are excepted.
	list func(ctx context.Context, except []uint32, room int) ([]T, error)
	// settle is one transaction over rows of one product, which may have changed
	// since they were listed.
	settle func(ctx context.Context, product uint32, rows []T) error
}

// settleDue settles at most limit rows.
func settleDue[T any](ctx context.Context, s *Store, d *due[T], limit int) error {
	var except []uint32
	for room := limit; room > 0; {
		rows, err := d.list(ctx, except, room)
		if err != nil {
			return err
		}
		before := len(except)
		byProduct := make(map[uint32][]T)
		for i := range rows {
			product, _ := d.of(&rows[i])
			byProduct[product] = append(byProduct[product], rows[i])
		}
		for _, product := range slices.Sorted(maps.Keys(byProduct)) {
			settled, err := settleProduct(ctx, s, d, product, byProduct[product])
			if err != nil {
				return err
			}
			room -= settled
			if settled < len(byProduct[product]) {
				except = append(except, product)
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

// settleProduct settles rows of one product together or, if that cannot be,
// one by one, and returns how many. Its error is that of a store which cannot
// settle anything now.
func settleProduct[T any](ctx context.Context, s *Store, d *due[T], product uint32, rows []T) (int, error) {
	err := d.settle(ctx, product, rows)
	switch {
	case err == nil:
		return len(rows), nil
	case halts(ctx, err):
		return 0, err
	case len(rows) == 1 || ofProduct(err):
		sayHeldUp(s, d, &rows[0], err)
		return 0, nil
	}
	settled, failed := 0, 0
	for i := range rows {
		err := d.settle(ctx, product, rows[i:i+1])
		switch {
		case err == nil:
			settled++
			continue
		case halts(ctx, err):
			return settled, err
		}
		sayHeldUp(s, d, &rows[i], err)
		if failed++; failed >= maxAlone || ofProduct(err) {
			break
		}
	}
	return settled, nil
}

// halts reports whether an error would be that of every other product too.
func halts(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked)
}

// ofProduct reports whether an error would be that of every other row of its
// product too: it is gone, or not as it has to be, or others are at it.
func ofProduct(err error) bool {
	return seckill.CodeNotFound.In(err) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrLocked)
}

// sayHeldUp names a row that was passed over.
func sayHeldUp[T any](s *Store, d *due[T], row *T, err error) {
	product, no := d.of(row)
	s.complaints.Say(slog.LevelWarn, fmt.Sprint("due ", d.table, " ", product), "a row that is due was passed over: it cannot be settled",
		"table", d.table, "product_id", product, "order_no", no.String(), "error", complaint.Clip(err.Error()))
}
