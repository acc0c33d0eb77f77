package storesql

import (
	"context"

	"seckill"
)

// A parked claim is a promise without an order yet. A seller in a new epoch must reserve its
// unit: otherwise other buyers would get it before the letter is retried. The ledger gets a
// mark for it. While the store is the seller, it does not sell the units of the letters of its
// epoch.

// lettersHeld bounds the letters that a new epoch reserves units for. Claims that cannot be
// written are rare. Claims beyond the bound must be adopted.
const lettersHeld = 10_000

// sqlLettersToHold begins with the letters of the last epoch, which reserve a unit now.
const sqlLettersToHold = sqlLetters + `product_id = ? AND epoch < ? ORDER BY epoch DESC, id LIMIT ?`

// sqlLettersHeld reads the letters of a limit group whose units the present epochs reserve.
const sqlLettersHeld = sqlLetters + `limit_group = ? AND epoch = (SELECT epoch FROM tb_seckill_product p WHERE p.id = product_id) ORDER BY id LIMIT ?`

const sqlParkedUnits = `SELECT COALESCE(SUM(quantity), 0) FROM tb_dead_letter WHERE closed_time IS NULL AND product_id = ? AND epoch = ?`

// parkedUnits returns the units that letters reserve while the store is the seller.
func parkedUnits(ctx context.Context, tx *session, p *seckill.Product) (units int64, err error) {
	if p.HasLedger() && p.SoldByStore() {
		_, err = tx.row(ctx, sqlParkedUnits, []any{p.ID, p.Epoch}, &units)
	}
	return units, err
}

// sqlRaiseLetters moves letters into an epoch. A worker that adopts a claim and finds it
// reserved closes the letter that it has read. If the letter were not moved, it would be
// closed, and nothing would know the claim.
var sqlRaiseLetters = list{
	head: `UPDATE tb_dead_letter SET epoch = ? WHERE closed_time IS NULL AND id IN (`, tail: `)`, columns: 1,
}

// holdLetters finds the parked claims whose units the new epoch of p reserves, returns them as
// queued orders, and moves their letters into the epoch. It leaves out claims whose adoption
// would be refused, because the adoption must write the reason.
func (s *Store) holdLetters(ctx context.Context, tx *session, p *seckill.Product) ([]seckill.Order, error) {
	letters, err := selectAll(ctx, tx, sqlLettersToHold, []any{p.ID, p.Epoch, lettersHeld}, scanLetter)
	if err != nil || len(letters) == 0 {
		return nil, err
	}
	claims := make([]*seckill.Claim, len(letters))
	for i := range letters {
		claims[i] = &letters[i].Item.Claim
	}
	known, err := readFacts(ctx, tx, p.Group, claims)
	if err != nil {
		return nil, err
	}
	var held []seckill.Order
	var ids []any
	left := p.Stock
	for i := range letters {
		item, units := &letters[i].Item, int64(claims[i].Quantity)
		_, exists := known.orders[claims[i].OrderNo]
		limit := int64(min(item.Limit, p.PerUserLimit))
		if exists || known.keyTaken(claims[i]) || known.units[claims[i].Buyer]+units > limit || units > left {
			continue
		}
		order := item.Order()
		order.Epoch = p.Epoch
		held, ids = append(held, order), append(ids, letters[i].ID)
		known.add(&order)
		left -= units
	}
	raised, err := tx.execRows(ctx, sqlRaiseLetters, []any{p.Epoch}, ids)
	if err == nil && raised != int64(len(ids)) {
		err = errVersion // a letter was closed since it was read
	}
	return held, err
}

// addParked adds the parked claims whose units the present epoch reserves to known. Claims of
// other products of the limit group count against the limit and keep their keys. Claims that
// are in the request keep their reservation until they are decided.
func (s *Store) addParked(ctx context.Context, tx *session, p *seckill.Product, known *facts) error {
	letters, err := selectAll(ctx, tx, sqlLettersHeld, []any{p.Group, lettersHeld}, scanLetter)
	if err != nil || len(letters) == 0 {
		return err
	}
	asked := make(map[any]bool, len(known.text))
	for _, no := range known.text {
		asked[no] = true
	}
	known.waiting, known.lettered = make(map[string][]seckill.OrderNo), make(map[seckill.OrderNo]seckill.Order)
	for i := range letters {
		order := letters[i].Item.Order()
		if _, exists := known.orders[order.OrderNo]; exists {
			continue
		}
		if order.ProductID == p.ID {
			known.parked += int64(order.Quantity)
		}
		if asked[order.OrderNo.String()] {
			known.lettered[order.OrderNo] = order
			known.hold(&order)
			continue
		}
		known.waiting[order.Buyer] = append(known.waiting[order.Buyer], order.OrderNo)
		known.add(&order)
	}
	return nil
}
