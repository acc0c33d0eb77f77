package storesql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill"
	"seckill/internal/ledger"
	"seckill/internal/store"
)

// sqlLiveNos finds the live orders of buyers in one limit group.
var sqlLiveNos = list{
	head: `SELECT user_id, order_no FROM tb_seckill_order WHERE limit_group = ? AND status IN (0, 1) AND user_id IN (`,
	tail: `)`, columns: 1,
}

// sqlDirectBuyers names the index that holds the origin, so that it reads no row of other
// orders.
func sqlDirectBuyers(d *dialect) string {
	return "SELECT user_id FROM tb_seckill_order" + d.by("ix_order_product_status") + "product_id = ? AND origin <> 0"
}

func (s *Store) Sell(ctx context.Context, req store.SellRequest) (store.SellResult, error) {
	var result store.SellResult
	err := s.change(ctx, "sell", func(ctx context.Context, tx *session) error {
		p, err := s.lockToChange(ctx, tx, req.ProductID)
		if err != nil {
			return err
		}
		if err := checkDirect(&p.Product, &req); err != nil {
			return err
		}
		c, err := s.newDirectSale(ctx, tx, &p.Product, &req, s.now())
		if err != nil {
			return err
		}
		if err := c.decide(req.Claims); err != nil {
			return err
		}
		if err := s.addHeldOrders(ctx, tx, c); err != nil {
			return err
		}
		result = store.SellResult{Verdicts: c.verdicts, Free: max(0, c.left-c.known.parked)}
		if len(c.sold) == 0 {
			return nil
		}
		if err := sell(ctx, tx, &p, c.sold, c.now); err != nil {
			return err
		}
		if !p.HasLedger() {
			return nil
		}
		return c.closeLetters(ctx, tx)
	})
	if err != nil {
		return store.SellResult{}, err
	}
	return result, nil
}

func (s *Store) DirectBuyers(ctx context.Context, product uint32, each func(buyer string) error) error {
	return s.read(ctx, "list buyers", func(ctx context.Context, r *session) error {
		return r.query(ctx, sqlDirectBuyers(r.dialect), []any{product}, func(row scanner) error {
			var buyer string
			if err := row.Scan(&buyer); err != nil {
				return err
			}
			return each(buyer)
		})
	})
}

// checkDirect refuses a request for a product that the store does not sell.
func checkDirect(p *seckill.Product, req *store.SellRequest) error {
	switch {
	case p.Epoch == 0:
		return seckill.Errorf(seckill.CodeWrongState, "product %d was never preheated", p.ID)
	case p.Epoch != req.Epoch:
		return fmt.Errorf("%w: it is %d, not %d", store.ErrEpoch, p.Epoch, req.Epoch)
	case !p.SoldByStore():
		return seckill.Errorf(seckill.CodeWrongState, "product %d is sold by its ledger", p.ID)
	case p.TakingOver():
		return seckill.Errorf(seckill.CodeWrongState, "product %d is being taken over", p.ID)
	}
	for i := range req.Claims {
		if claim := &req.Claims[i]; claim.Quantity < 1 {
			return seckill.Errorf(seckill.CodeBadRequest, "claim %s is for %d units", claim.OrderNo, claim.Quantity)
		}
	}
	return nil
}

// directSale decides the claims of one request.
type directSale struct {
	product     *seckill.Product
	expireAfter time.Duration
	now         time.Time
	known       *facts

	left     int64 // units of the stock not sold yet
	sold     []seckill.Order
	verdicts []store.SellVerdict
	taken    map[string][]seckill.OrderNo // by buyer: orders in sold
	over     map[string][]int             // by buyer: indexes of verdicts over the limit
}

// newDirectSale reads the facts that the claims depend on.
func (s *Store) newDirectSale(ctx context.Context, tx *session, p *seckill.Product, req *store.SellRequest, now time.Time) (*directSale, error) {
	claims := make([]*seckill.Claim, len(req.Claims))
	for i := range req.Claims {
		claims[i] = &req.Claims[i]
	}
	known, err := readFacts(ctx, tx, p.Group, claims)
	if err != nil {
		return nil, err
	}
	var nos []any // orders with the same keys as the claims
	for _, no := range known.keys {
		nos = append(nos, no.String())
	}
	if err := known.readOrders(ctx, tx, nos); err != nil {
		return nil, err
	}
	if p.HasLedger() {
		if err := s.addParked(ctx, tx, p, known); err != nil {
			return nil, err
		}
	}
	c := &directSale{
		product: p, expireAfter: req.ExpireAfter, now: now, known: known, left: p.Stock,
		verdicts: make([]store.SellVerdict, 0, len(claims)),
		taken:    make(map[string][]seckill.OrderNo), over: make(map[string][]int),
	}
	return c, nil
}

func (c *directSale) decide(claims []seckill.Claim) error {
	for i := range claims {
		buyer := claims[i].Buyer
		verdict, err := c.verdict(&claims[i])
		if err != nil {
			return err
		}
		switch verdict.Code {
		case ledger.VerdictAccepted:
			c.taken[buyer] = append(c.taken[buyer], verdict.OrderNo)
		case ledger.VerdictOverLimit:
			verdict.Held = slices.Clone(c.taken[buyer])
			c.over[buyer] = append(c.over[buyer], i)
		}
		c.verdicts = append(c.verdicts, verdict)
	}
	return nil
}

// refusal returns the verdict of a claim that is refused regardless of the stock, or the zero
// verdict.
func (c *directSale) refusal(claim *seckill.Claim) store.SellVerdict {
	if no, status, repeated := c.known.earlierOrder(claim); repeated {
		return sellVerdict(ledger.VerdictRepeated, no, status)
	}
	switch {
	case c.product.State == seckill.SalePaused:
		return sellVerdict(ledger.VerdictPaused, seckill.OrderNo{}, 0)
	case c.product.State == seckill.SaleEnded:
		return sellVerdict(ledger.VerdictEnded, seckill.OrderNo{}, 0)
	case c.known.units[claim.Buyer]+int64(claim.Quantity) > int64(c.product.PerUserLimit):
		return sellVerdict(ledger.VerdictOverLimit, seckill.OrderNo{}, 0)
	}
	return store.SellVerdict{}
}

func (c *directSale) verdict(claim *seckill.Claim) (store.SellVerdict, error) {
	c.known.dropReservation(claim)
	if barred := c.refusal(claim); barred.Code != 0 {
		return barred, nil
	}
	units := int64(claim.Quantity)
	if units > c.left-c.known.parked {
		return sellVerdict(ledger.VerdictSoldOut, seckill.OrderNo{}, 0), nil
	}
	order := c.order(claim)
	if err := order.Confirm(c.now, c.expireAfter); err != nil {
		return store.SellVerdict{}, err
	}
	c.left -= units
	c.sold = append(c.sold, order)
	c.known.add(&order)
	return sellVerdict(ledger.VerdictAccepted, order.OrderNo, order.Status), nil
}

func sellVerdict(code ledger.VerdictCode, no seckill.OrderNo, status seckill.OrderStatus) store.SellVerdict {
	return store.SellVerdict{Verdict: ledger.Verdict{Code: code, OrderNo: no}, Status: status}
}

// order returns the order of a claim, at the product's present price.
func (c *directSale) order(claim *seckill.Claim) seckill.Order {
	p := c.product
	origin, epoch := seckill.OriginLedger, p.Epoch
	if !p.HasLedger() {
		origin, epoch = seckill.OriginDirect, 0
	}
	return seckill.Order{
		OrderNo: claim.OrderNo, Buyer: claim.Buyer, ProductID: p.ID, Group: p.Group, ProductName: p.Name,
		PriceCents: p.PriceCents, Currency: p.Currency, Quantity: claim.Quantity, Ref: claim.Ref, Key: claim.Key,
		Status: seckill.OrderQueued, CreatedAt: c.now, Epoch: epoch, Shard: seckill.HomeShard(p, claim.Buyer), Origin: origin,
	}
}

// addHeldOrders adds the buyer's earlier live orders to each verdict over the limit. The verdict
// already has the orders of this request.
func (s *Store) addHeldOrders(ctx context.Context, tx *session, c *directSale) error {
	if len(c.over) == 0 {
		return nil
	}
	buyers := make([]any, 0, len(c.over))
	for buyer := range c.over {
		buyers = append(buyers, buyerBytes(buyer))
	}
	err := tx.queryRows(ctx, sqlLiveNos, []any{c.product.Group}, buyers, func(row scanner) error {
		var buyer string
		var no seckill.OrderNo
		if err := row.Scan(&buyer, orderNo{&no}); err != nil {
			return err
		}
		for _, i := range c.over[buyer] {
			c.verdicts[i].Held = append(c.verdicts[i].Held, no)
		}
		return nil
	})
	for buyer, verdicts := range c.over {
		for _, i := range verdicts {
			c.verdicts[i].Held = append(c.verdicts[i].Held, c.known.waiting[buyer]...)
			slices.SortFunc(c.verdicts[i].Held, seckill.NewestFirst)
		}
	}
	return err
}

// closeLetters closes the letters of claims that were sold: the order has the unit now.
func (c *directSale) closeLetters(ctx context.Context, tx *session) error {
	nos := make([]any, len(c.sold))
	for i := range c.sold {
		nos[i] = c.sold[i].OrderNo.String()
	}
	return closeLetters(ctx, tx, c.product.ID, nos, c.now)
}

// sell takes the units of new orders from stock and writes orders, stock log, buyer records and
// events, each by multi-row statements.
func sell(ctx context.Context, tx *session, p *productRow, sold []seckill.Order, now time.Time) error {
	rows := newSaleRows(sold)
	if err := rows.writeOrders(ctx, tx); err != nil {
		return err
	}
	if err := rows.writeBuyers(ctx, tx, tx.dialect.addUnits); err != nil {
		return err
	}
	return rows.takeStock(ctx, tx, p, now)
}

// saleRows are the rows of new orders of one product.
type saleRows struct {
	orders, buyers []any
	moves          []stockMove
}

func newSaleRows(sold []seckill.Order) *saleRows {
	n := len(sold)
	rows := &saleRows{
		orders: make([]any, 0, n*sqlInsertOrders.columns), buyers: make([]any, 0, n*sqlNewBuyers.columns),
		moves: make([]stockMove, n),
	}
	for i := range sold {
		o := &sold[i]
		text := o.OrderNo.String()
		no, units := any(text), int64(o.Quantity)
		rows.orders = insertArgs(rows.orders, o, text, owing{}, 0)
		rows.buyers = append(rows.buyers, o.Group, buyerBytes(o.Buyer), no, units)
		rows.moves[i] = stockMove{orderNo: no, quantity: units, delta: -units}
	}
	return rows
}

func (rows *saleRows) writeOrders(ctx context.Context, tx *session) error {
	_, err := tx.execRows(ctx, sqlInsertOrders, nil, rows.orders)
	return err
}

// writeBuyers writes the buyer records, by addUnits or sqlNewBuyers.
func (rows *saleRows) writeBuyers(ctx context.Context, tx *session, by list) error {
	_, err := tx.execRows(ctx, by, nil, rows.buyers)
	return err
}

// takeStock takes the units from stock, and writes stock log and events.
func (rows *saleRows) takeStock(ctx context.Context, tx *session, p *productRow, now time.Time) error {
	if err := moveStock(ctx, tx, p, logSold, rows.moves, 0, now); err != nil {
		return err
	}
	events := make([]any, 0, len(rows.moves)*sqlInsertEvents.columns)
	at, kind, product := any(millis(now)), any(string(seckill.EventOrderConfirmed)), any(p.ID)
	for i := range rows.moves {
		events = append(events, at, kind, product, rows.moves[i].orderNo, "")
	}
	if err := writeEvents(ctx, tx, events); err != nil {
		return err
	}
	if p.Stock == 0 {
		if err := writeSaleEvent(ctx, tx, p, seckill.EventSaleSoldOut, now); err != nil {
			return err
		}
	}
	var sold int64
	for i := range rows.moves {
		sold += rows.moves[i].quantity
	}
	return countUnits(ctx, tx, p.ID, units{seckill.OrderPending, sold})
}
