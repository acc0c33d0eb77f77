package storesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"math"

	"seckill/internal/store"
)

const (
	sqlLiveUnits = `SELECT user_id, quantity FROM tb_seckill_order
		WHERE product_id IN (SELECT id FROM tb_seckill_product WHERE limit_group = ?) AND status IN (0, 1)`
	sqlRecordedUnits = `SELECT user_id, quantity FROM tb_user_seckill WHERE product_id = ?`

	// Live units of each buyer beside those in the record. Both are read in the order of their
	// storage and then sorted. An index lookup per buyer took ten times as long, because its
	// rows are scattered.
	sqlBuyersWrong = `SELECT user_id, SUM(live), SUM(recorded), COALESCE(MAX(live_no), '') FROM
		(SELECT user_id, quantity AS live, 0 AS recorded, order_no AS live_no FROM tb_seckill_order
			WHERE product_id IN (SELECT id FROM tb_seckill_product WHERE limit_group = ?) AND status IN (0, 1)
		UNION ALL
		SELECT user_id, 0, quantity, NULL FROM tb_user_seckill WHERE product_id = ?) AS units
		GROUP BY user_id HAVING SUM(live) <> SUM(recorded) OR SUM(live) > ? LIMIT ?`

	sqlDropBuyer = `DELETE FROM tb_user_seckill WHERE product_id = ? AND user_id = ?`
)

// errEnough ends a walk that has found limit findings.
var errEnough = errors.New("enough findings")

// findings collects at most limit findings.
type findings struct {
	list  []store.Finding
	limit int
}

func (f *findings) add(expected, found any, format string, args ...any) error {
	if len(f.list) >= f.limit {
		return errEnough
	}
	f.list = append(f.list, store.Finding{
		Expected: fmt.Sprint(expected), Found: fmt.Sprint(found), Detail: fmt.Sprintf(format, args...),
	})
	return nil
}

// check runs walk on one snapshot until it has limit findings.
func (s *Store) check(ctx context.Context, name string, limit int, walk func(ctx context.Context, r *session, f *findings) error) ([]store.Finding, error) {
	f := findings{limit: limit}
	err := s.snapshot(ctx, name, func(ctx context.Context, r *session) error {
		if err := walk(ctx, r, &f); !errors.Is(err, errEnough) {
			return err
		}
		return nil
	})
	return f.list, err
}

// buyerRecord is a buyer record that differs from the buyer's live orders.
type buyerRecord struct {
	buyer          string
	live, recorded int64
	newest         string // the newest live order
}

// wrongBuyers finds at most limit buyers whose record is wrong or who have more live units than
// most.
func wrongBuyers(ctx context.Context, r *session, group uint32, most int64, limit int) ([]buyerRecord, error) {
	return selectAll(ctx, r, sqlBuyersWrong, []any{group, group, most, limit}, func(row scanner, b *buyerRecord) error {
		return row.Scan(&b.buyer, &b.live, &b.recorded, &b.newest)
	})
}

// buyersSound reports whether every buyer's record has the units of the buyer's live orders,
// and no buyer has more than most. For records and for orders it adds up units times a hash of
// the buyer. If the units of each buyer are equal, so are the two sums; otherwise they are
// equal by a chance of 1 in 2⁶⁴.
func buyersSound(ctx context.Context, r *session, group uint32, most int64) (bool, error) {
	seed := maphash.MakeSeed()
	var sum uint64
	within := true
	add := func(sign uint64) func(row scanner) error {
		var buyer sql.RawBytes
		var units int64
		into := []any{&buyer, &units}
		return func(row scanner) error {
			err := row.Scan(into...)
			sum += sign * maphash.Bytes(seed, buyer) * uint64(units)
			within = within && units <= most
			return err
		}
	}
	if err := r.query(ctx, sqlLiveUnits, []any{group}, add(1)); err != nil {
		return false, err
	}
	err := r.query(ctx, sqlRecordedUnits, []any{group}, add(^uint64(0)))
	return sum == 0 && within, err
}

func (s *Store) CheckBuyers(ctx context.Context, group uint32, limit int) ([]store.Finding, error) {
	return s.check(ctx, "check buyers", limit, func(ctx context.Context, r *session, f *findings) error {
		owner, err := readProduct(ctx, r, group)
		if err != nil {
			return err
		}
		most := int64(owner.PerUserLimit)
		// Sorting millions of buyers takes minutes, adding them up takes seconds.
		if sound, err := buyersSound(ctx, r, group, most); err != nil || sound {
			return err
		}
		wrong, err := wrongBuyers(ctx, r, group, most, limit)
		for _, b := range wrong {
			if err == nil && b.live != b.recorded {
				err = f.add(b.live, b.recorded, "units in the record of buyer %q, by the live orders", b.buyer)
			}
			if err == nil && b.live > most {
				err = f.add(fmt.Sprintf("at most %d", most), b.live, "live units of buyer %q", b.buyer)
			}
		}
		return err
	})
}

func (s *Store) RepairBuyers(ctx context.Context, group uint32, limit int, actor store.Actor) (int, error) {
	return changed(ctx, s, "repair", func(ctx context.Context, tx *session) (int, error) {
		if err := lockRow(ctx, tx, group); err != nil {
			return 0, err
		}
		wrong, err := wrongBuyers(ctx, tx, group, math.MaxInt64, limit)
		if err != nil || len(wrong) == 0 {
			return 0, err
		}
		for i := range wrong {
			if err := repairBuyer(ctx, tx, group, &wrong[i]); err != nil {
				return 0, err
			}
		}
		detail := fmt.Sprintf("%d buyer records of group %d, first %q: %d -> %d units", len(wrong), group, wrong[0].buyer, wrong[0].recorded, wrong[0].live)
		return len(wrong), writeAudit(ctx, tx, s.now(), actor, "repair.buyers", group, "", detail)
	})
}

func repairBuyer(ctx context.Context, tx *session, group uint32, b *buyerRecord) error {
	if _, err := tx.exec(ctx, sqlDropBuyer, group, buyerBytes(b.buyer)); err != nil || b.live == 0 {
		return err
	}
	_, err := tx.execRows(ctx, sqlNewBuyers, nil, []any{group, buyerBytes(b.buyer), b.newest, b.live})
	return err
}
