package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// judge looks at every suspect again. The order of the readings is what keeps
// traffic from looking like drift:
//
//   - An order in a mark has an entry in the queue until the store has its row or
//     its letter, and a letter until it has the row. So mark and entry are read
//     first, then the letter, then the row: an order with none of them has none.
//   - A row that the ledger sold dies before the ledger releases it. So its mark is
//     read first, then the row: one that still lives must have been held.
//   - The key of an order is known from its sale, or its install, until the epoch
//     ends. So one that was dead when the rows were read, and was not met, is
//     forgotten; but for buyers who have more dead orders than are remembered.
func (c *comparison) judge(ctx context.Context) error {
	for some := range slices.Chunk(c.suspects, judgeBatch) {
		if err := c.judgeMarks(ctx, some); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(c.unseen(rowMarked), judgeBatch) {
		if err := c.judgeRows(ctx, some); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(c.unseen(rowKnown), judgeBatch) {
		if err := c.judgeKeys(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// judgeMarks is about orders in marks. Nearly all have a row by now.
func (c *comparison) judgeMarks(ctx context.Context, suspects []suspect) error {
	nos := make([]seckill.OrderNo, len(suspects))
	for i := range suspects {
		nos[i] = suspects[i].mark.OrderNo
	}
	rows, err := c.orders(ctx, nos)
	if err != nil {
		return err
	}
	for i := range suspects {
		if c.enough() {
			return nil
		}
		s := &suspects[i]
		row, stored := rows[s.mark.OrderNo]
		if stored && c.agrees(s, &row) {
			continue
		}
		if err := c.judgeMark(ctx, s, stored); err != nil {
			return err
		}
	}
	return nil
}

// judgeMark is about an order in a mark without a row that says the same.
func (c *comparison) judgeMark(ctx context.Context, s *suspect, stored bool) error {
	if s.mark.Quantity > 0 {
		held, queued, err := c.held(ctx, s.shard, s.mark.Buyer, s.mark.OrderNo)
		if err != nil {
			return err
		}
		if held != s.mark || queued && !stored { // it is gone; or it has yet to become a row
			return nil
		}
		if !stored {
			parked, err := c.judgeLetter(ctx, s)
			if err != nil || parked {
				return err
			}
		}
	}
	rows, err := c.orders(ctx, []seckill.OrderNo{s.mark.OrderNo})
	if err != nil {
		return err
	}
	row, stored := rows[s.mark.OrderNo]
	note := ""
	switch {
	case stored && c.agrees(s, &row):
		return nil
	case !stored:
		c.differ(s.shard, s.mark.OrderNo, s.mark.Buyer, "an order, a letter or an entry of the queue", "none")
		return nil
	case row.ProductID != c.product.ID:
		note = ", of another product"
	case seckill.HomeShard(c.product, s.mark.Buyer) != s.shard:
		note = ", on another shard"
	case row.Key != s.mark.Key:
		note = ", under another key"
	}
	c.differ(s.shard, s.mark.OrderNo, s.mark.Buyer, describe(row.Buyer, row.Quantity, note), describe(s.mark.Buyer, s.mark.Quantity, ""))
	return nil
}

// agrees reports whether a row says what the mark says. Of a dead order the mark
// keeps the key alone; one that failed may have left it to another order.
func (c *comparison) agrees(s *suspect, row *seckill.Order) bool {
	return row.ProductID == c.product.ID && row.Buyer == s.mark.Buyer &&
		seckill.HomeShard(c.product, s.mark.Buyer) == s.shard &&
		(s.mark.Quantity == 0 || row.Quantity == s.mark.Quantity) &&
		(row.Key == s.mark.Key || row.Key == "" && row.Status == seckill.OrderFailed)
}

// judgeRows is about orders that the ledger has to hold and was not seen to.
func (c *comparison) judgeRows(ctx context.Context, nos []seckill.OrderNo) error {
	rows, err := c.orders(ctx, nos)
	if err != nil {
		return err
	}
	for _, no := range nos {
		row, ok := rows[no]
		if !ok || !c.mustBeHeld(&row) {
			continue
		}
		if c.enough() {
			return nil
		}
		shard := seckill.HomeShard(c.product, row.Buyer)
		held, _, err := c.held(ctx, shard, row.Buyer, no)
		if err != nil {
			return err
		}
		if held.Quantity == row.Quantity && held.Key == row.Key {
			continue
		}
		again, err := c.orders(ctx, []seckill.OrderNo{no})
		if err != nil {
			return err
		}
		if now, ok := again[no]; ok && c.mustBeHeld(&now) {
			c.differ(shard, no, row.Buyer, describe(row.Buyer, row.Quantity, ""), describe(row.Buyer, held.Quantity, ""))
		}
	}
	return nil
}

// judgeKeys is about dead orders whose keys the ledger has to know and was not
// seen to.
func (c *comparison) judgeKeys(ctx context.Context, nos []seckill.OrderNo) error {
	rows, err := c.orders(ctx, nos)
	if err != nil {
		return err
	}
	for _, no := range nos {
		row, ok := rows[no]
		if !ok {
			continue
		}
		if c.enough() {
			return nil
		}
		all, err := c.r.Store.SearchOrders(ctx, store.OrderFilter{ProductID: c.product.ID, Buyer: row.Buyer, Limit: ledger.MaxReturned})
		if err != nil {
			return err
		}
		if len(all) < ledger.MaxReturned {
			c.differ(seckill.HomeShard(c.product, row.Buyer), no, row.Buyer, "the key of a dead order", "none")
		}
	}
	return nil
}

// mustBeHeld reports whether the ledger has to hold an order: it sold it, and
// it is live.
func (c *comparison) mustBeHeld(o *seckill.Order) bool {
	return o.ProductID == c.product.ID && o.Origin == seckill.OriginLedger && o.Status.Live()
}

// held is what the buyer's mark has of an order, the zero Mark if it does not hold
// it, and whether its entry is still in the queue and says the same.
func (c *comparison) held(ctx context.Context, shard int, buyer string, no seckill.OrderNo) (m ledger.Mark, queued bool, err error) {
	p := c.product
	holdings, err := c.r.Ledger.Held(ctx, ledger.Shard{Product: p.ID, Group: p.Group, Index: shard}, buyer)
	if errors.Is(err, ledger.ErrDamaged) {
		return m, false, nil // what is no mark holds nothing
	}
	if err != nil {
		return m, false, seckill.Errorf(seckill.CodeBusy, "read mark: %w", err)
	}
	for i := range holdings {
		h := &holdings[i]
		if h.OrderNo != no {
			continue
		}
		m = ledger.Mark{Buyer: buyer, OrderNo: no, Quantity: h.Quantity, Key: h.Key}
		for _, claim := range h.Entry.Claims {
			queued = claim.Buyer == buyer && claim.Quantity == h.Quantity && claim.Key == h.Key
		}
		return m, queued, nil
	}
	return m, false, nil
}

// judgeLetter reports whether the order has a letter, which must say what the
// mark says. It is the only other word on it, and nobody can tell which is true.
func (c *comparison) judgeLetter(ctx context.Context, s *suspect) (parked bool, err error) {
	letter, err := c.r.Store.LetterByOrder(ctx, s.mark.OrderNo)
	if seckill.CodeOf(err) == seckill.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	item, claim := &letter.Item, &letter.Item.Claim
	if claim.Buyer != s.mark.Buyer || claim.Quantity != s.mark.Quantity || claim.Key != s.mark.Key ||
		item.ProductID != c.product.ID || item.Group != c.product.Group || item.Shard != s.shard {
		c.contradicts(s.shard, s.mark.OrderNo, s.mark.Buyer, describe(s.mark.Buyer, s.mark.Quantity, ""),
			describe(claim.Buyer, claim.Quantity, fmt.Sprintf(", product %d, group %d, shard %d, in its letter", item.ProductID, item.Group, item.Shard)))
	}
	return true, nil
}

// orders reads rows, by number.
func (c *comparison) orders(ctx context.Context, nos []seckill.OrderNo) (map[seckill.OrderNo]seckill.Order, error) {
	list, err := c.r.Store.OrdersByNo(ctx, nos)
	if err != nil {
		return nil, err
	}
	rows := make(map[seckill.OrderNo]seckill.Order, len(list))
	for i := range list {
		rows[list[i].OrderNo] = list[i]
	}
	return rows, nil
}
