package storesql

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/store"
)

const letterColumns = `id, order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity, idem_key, ref,
	product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time, dead_time`

const (
	sqlLettersDue = `SELECT ` + letterColumns + ` FROM tb_dead_letter
		WHERE closed_time IS NULL AND dead_time IS NULL AND next_time <= ? AND `
	sqlLettersDueOrder = ` ORDER BY next_time, id LIMIT ?`
	sqlDeadLetters     = `SELECT product_id, id FROM tb_dead_letter
		WHERE closed_time IS NULL AND dead_time <= ? AND `
	sqlDeadLettersOrder = ` ORDER BY dead_time, id LIMIT ?`
	sqlLettersBy        = `SELECT ` + letterColumns + ` FROM tb_dead_letter`
	sqlLetters          = sqlLettersBy + ` WHERE closed_time IS NULL AND `
	sqlLetter           = sqlLetters + `id = ?`
	sqlLetterByOrder    = sqlLetters + `order_no = ?`
	sqlAnyLetters       = `SELECT 1 FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = ? LIMIT 1`

	sqlLetterFailed = `UPDATE tb_dead_letter SET attempts = attempts + 1, reason = ?, next_time = ?, dead_time = ?
		WHERE id = ? AND closed_time IS NULL AND dead_time IS NULL`
	sqlRetryLetter = `UPDATE tb_dead_letter SET attempts = 0, next_time = ?, dead_time = NULL WHERE id = ? AND closed_time IS NULL`
	sqlCloseLetter = `UPDATE tb_dead_letter SET closed_time = ? WHERE id = ? AND closed_time IS NULL`

	sqlCloseAdopted = sqlCloseLetter + ` AND epoch = ?`

	// A claim that has its order gets no letter, and a letter that waits already stays as it
	// is. So an entry that is delivered again parks nothing twice. A letter that is closed, or
	// whose claim was adopted since and therefore has a lower epoch, starts anew.
	sqlParkAgain = `UPDATE tb_dead_letter SET shard = ?, epoch = ?, claim_time = ?, attempts = 1, reason = ?, next_time = ?,
		dead_time = NULL, closed_time = NULL WHERE order_no = ? AND (closed_time IS NOT NULL OR epoch < ?)
		AND NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = ?)`
	sqlPark = `INSERT INTO tb_dead_letter (order_no, user_id, product_id, limit_group, shard, epoch, claim_time, quantity,
		idem_key, ref, product_name, price_cents, currency, per_user_limit, attempts, reason, next_time, create_time)
		SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?,1,?,?,? FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_seckill_order WHERE order_no = ?)
		AND NOT EXISTS (SELECT 1 FROM tb_dead_letter WHERE order_no = ?)`
)

// sqlCloseLetters adds 0 so that no index matches. With an index and few waiting letters, the
// database would scan all of them, and wait for locks on letters of other products.
var sqlCloseLetters = list{
	head: `UPDATE tb_dead_letter SET closed_time = ? WHERE closed_time + 0 IS NULL AND order_no IN (`, tail: `)`, columns: 1,
}

func scanLetter(row scanner, l *store.Letter) error {
	item, claim := &l.Item, &l.Item.Claim
	err := row.Scan(&l.ID, orderNo{&claim.OrderNo}, &claim.Buyer, &item.ProductID, &item.Group, &item.Shard, &item.Epoch,
		millisTime{&item.At}, &claim.Quantity, &claim.Key, &claim.Ref, &item.Name, &item.PriceCents, &item.Currency, &item.Limit,
		&l.Attempts, &l.Reason, millisTime{&l.NextAt}, millisTime{&l.CreatedAt}, millisTime{&l.DeadAt})
	if err != nil {
		return fmt.Errorf("read letter: %w", err)
	}
	item.LetterID, l.Dead = l.ID, !l.DeadAt.IsZero()
	return nil
}

// oneLetter reads the letter that query finds by one argument.
func oneLetter(ctx context.Context, r *session, query string, by any) (store.Letter, error) {
	l, found, err := selectOne(ctx, r, query, []any{by}, scanLetter)
	if err == nil && !found {
		err = seckill.Errorf(seckill.CodeNotFound, "no letter %v", by)
	}
	return l, err
}

func (s *Store) LettersDue(ctx context.Context, limit int, except ...uint32) ([]store.Letter, error) {
	others := exceptProducts(except)
	args := concat([]any{millis(s.now())}, others.with(limit))
	return listReadable(ctx, s, "list due letters", sqlLettersDue+others.text()+sqlLettersDueOrder, args, scanLetter)
}

func (s *Store) Letters(ctx context.Context, filter store.LetterFilter) ([]store.Letter, error) {
	query, args := s.dialect.pageOfLetters(&filter)
	return listed(ctx, s, "list letters", query, args, scanLetter)
}

func (d *dialect) pageOfLetters(filter *store.LetterFilter) (string, []any) {
	var where conditions
	index := "ix_letter_open"
	where.add("closed_time IS NULL AND id > ?", filter.After)
	if filter.ProductID != 0 {
		index = "ix_letter_product"
		where.add("product_id = ?", filter.ProductID)
	}
	if filter.Buyer != "" {
		index = "ix_letter_buyer"
		where.add("user_id = ?", buyerBytes(filter.Buyer))
	}
	if filter.DeadOnly {
		where.add("dead_time IS NOT NULL")
	}
	return sqlLettersBy + d.by(index) + where.text() + " ORDER BY id LIMIT ?", where.with(filter.Limit)
}

func (s *Store) LetterByOrder(ctx context.Context, no seckill.OrderNo) (store.Letter, error) {
	var l store.Letter
	err := s.read(ctx, "read letter", func(ctx context.Context, r *session) (err error) {
		l, err = oneLetter(ctx, r, sqlLetterByOrder, no.String())
		return err
	})
	return l, err
}

// park writes claims as letters. They are few, so one statement each.
func park(ctx context.Context, tx *session, parked []store.Parked, now time.Time) error {
	for i := range parked {
		item, claim := &parked[i].Item, &parked[i].Item.Claim
		no := claim.OrderNo.String()
		next := millis(now.Add(parked[i].Delay))
		_, err := tx.exec(ctx, sqlParkAgain, item.Shard, item.Epoch, millis(item.At), parked[i].Reason, next, no, item.Epoch, no)
		if err != nil {
			return err
		}
		_, err = tx.exec(ctx, sqlPark, no, buyerBytes(claim.Buyer), item.ProductID, item.Group, item.Shard, item.Epoch,
			millis(item.At), claim.Quantity, claim.Key, claim.Ref, item.Name, item.PriceCents, item.Currency, item.Limit,
			parked[i].Reason, next, millis(now), no, no)
		if err != nil {
			return err
		}
	}
	return nil
}

// closeLetters closes the letters of orders of one product. Most batches have none: the first
// read saves them a search per order.
func closeLetters(ctx context.Context, tx *session, product uint32, nos []any, now time.Time) error {
	waiting, err := tx.row(ctx, sqlAnyLetters, []any{product}, new(int))
	if err != nil || !waiting {
		return err
	}
	_, err = tx.execRows(ctx, sqlCloseLetters, []any{millis(now)}, nos)
	return err
}

func (s *Store) LetterFailed(ctx context.Context, id int64, reason string, delay time.Duration) error {
	return s.change(ctx, "letter", func(ctx context.Context, tx *session) error {
		now := s.now()
		next, dead := now.Add(delay), time.Time{}
		if delay < 0 {
			next, dead = now, now
		}
		_, err := tx.exec(ctx, sqlLetterFailed, reason, millis(next), nullMillis(dead), id)
		return err
	})
}

func (s *Store) CloseLetter(ctx context.Context, id int64, epoch uint64) error {
	return s.change(ctx, "letter", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlCloseAdopted, millis(s.now()), id, epoch)
		return err
	})
}

func (s *Store) RetryLetter(ctx context.Context, id int64, actor store.Actor) (store.Letter, error) {
	return changed(ctx, s, "letter", func(ctx context.Context, tx *session) (store.Letter, error) {
		l, err := oneLetter(ctx, tx, sqlLetter, id)
		if err != nil {
			return l, err
		}
		now := s.now()
		if err := compared(tx.exec(ctx, sqlRetryLetter, millis(now), id)); err != nil { // closed since it was read
			return l, err
		}
		l.Attempts, l.NextAt, l.DeadAt, l.Dead = 0, now, time.Time{}, false
		return l, writeAudit(ctx, tx, now, actor, "letter.retry", l.Item.ProductID, l.Item.Claim.OrderNo.String(), l.Reason)
	})
}

func (s *Store) DiscardLetter(ctx context.Context, id int64, actor store.Actor) (seckill.Order, error) {
	return changed(ctx, s, "discard", func(ctx context.Context, tx *session) (order seckill.Order, err error) {
		l, err := oneLetter(ctx, tx, sqlLetter, id)
		if err != nil {
			return order, err
		}
		now := s.now()
		order, discarded, err := discard(ctx, tx, &l, now)
		if err == nil && !discarded {
			err = seckill.Errorf(seckill.CodeWrongState, "order %s is confirmed", l.Item.Claim.OrderNo)
		}
		if err != nil {
			return order, err
		}
		return order, writeAudit(ctx, tx, now, actor, "letter.discard", order.ProductID, order.OrderNo.String(), l.Reason)
	})
}

func (s *Store) DiscardDead(ctx context.Context, age time.Duration, limit int) (int, error) {
	count := 0
	err := settleDue(ctx, s, &due[int64]{
		table: "tb_dead_letter",
		list: func(ctx context.Context, except []uint32, room int) ([]dueRow[int64], error) {
			others := exceptProducts(except)
			args := concat([]any{millis(s.now().Add(-age))}, others.with(room))
			return listed(ctx, s, "list dead letters", sqlDeadLetters+others.text()+sqlDeadLettersOrder, args, scanDue[int64])
		},
		settle: func(ctx context.Context, product uint32, listed []int64) error {
			discarded, err := s.discardDead(ctx, product, age, listed)
			count += discarded
			return err
		},
	}, limit)
	return count, err
}

// discardDead discards the listed letters of a product that are still dead, and returns how
// many became failed orders.
func (s *Store) discardDead(ctx context.Context, product uint32, age time.Duration, listed []int64) (int, error) {
	return changed(ctx, s, "discard", func(ctx context.Context, tx *session) (count int, err error) {
		now := s.now()
		if _, err := lockProduct(ctx, tx, product); err != nil {
			return 0, err
		}
		for _, id := range listed {
			l, err := oneLetter(ctx, tx, sqlLetter, id)
			if seckill.CodeNotFound.In(err) || err == nil && (!l.Dead || l.DeadAt.After(now.Add(-age))) {
				continue // closed or retried since it was listed
			}
			if err != nil {
				return 0, err
			}
			_, discarded, err := discard(ctx, tx, &l, now)
			if err != nil {
				return 0, err
			}
			if discarded {
				count++
			}
		}
		return count, nil
	})
}

// discard writes a failed order in place of a letter, and owes its release if the ledger is the
// seller. The ledger may have the mark at the letter's epoch, or at the present one if the
// claim was adopted since; a release at the present epoch settles both. If the order exists,
// the letter is only closed. But if that order must have no mark, its release is owed, because
// the letter may have been the last record of one.
func discard(ctx context.Context, tx *session, l *store.Letter, now time.Time) (order seckill.Order, discarded bool, err error) {
	p, err := lockProduct(ctx, tx, l.Item.ProductID)
	if err != nil {
		return order, false, err
	}
	known, err := readFacts(ctx, tx, l.Item.Group, []*seckill.Claim{&l.Item.Claim})
	if err != nil {
		return order, false, err
	}
	if err := compared(tx.exec(ctx, sqlCloseLetter, millis(now), l.ID)); err != nil { // closed since it was read
		return order, false, err
	}
	owes := owing{p.Epoch, !p.SoldByStore()}
	if _, exists := known.orders[l.Item.Claim.OrderNo]; exists {
		if p.SoldByStore() {
			return order, false, nil
		}
		return order, false, owe(ctx, tx, sqlOweAgain, p.Epoch, known.text, now)
	}
	order = l.Item.Order()
	if known.keyTaken(&l.Item.Claim) {
		order.Key = ""
	}
	if err := order.Fail(now, seckill.ReasonDiscarded); err != nil {
		return order, false, err
	}
	return order, true, writeFailed(ctx, tx, []seckill.Order{order}, owes, now)
}
