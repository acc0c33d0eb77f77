package storesql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill"
	"seckill/internal/store"
)

func (s *Store) Confirm(ctx context.Context, req store.ConfirmRequest) ([]store.ConfirmOutcome, error) {
	var outcomes []store.ConfirmOutcome
	assume := len(req.Items) > 0
	err := s.change(ctx, "confirm", func(ctx context.Context, tx *session) (err error) {
		var out *decided
		var p productRow
		if assume {
			assume = false // if the transaction is run again, the assumption was wrong
			out, err = s.sellNew(ctx, tx, &req, &p)
		} else {
			out, err = s.sellDecided(ctx, tx, &req, &p)
		}
		if err != nil {
			return err
		}
		outcomes = out.outcomes
		if err := finishConfirm(ctx, tx, &p, &req, out); err != nil {
			return err
		}
		if req.Committing != nil {
			req.Committing()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// sellDecided reads what the store knows of the claims, decides them, and writes the new orders
// and the failed ones.
func (s *Store) sellDecided(ctx context.Context, tx *session, req *store.ConfirmRequest, p *productRow) (*decided, error) {
	var err error
	if *p, err = s.lockToChange(ctx, tx, req.ProductID); err != nil {
		return nil, err
	}
	known, err := readFacts(ctx, tx, p.Group, claimsOf(req.Items))
	if err != nil {
		return nil, err
	}
	if p.SoldByStore() {
		if err := s.addParked(ctx, tx, &p.Product, known); err != nil {
			return nil, err
		}
	}
	out, err := decideClaims(&p.Product, req, known, s.now())
	if err != nil {
		return nil, err
	}
	if len(out.fresh) > 0 {
		if err := sell(ctx, tx, p, out.fresh, out.now); err != nil {
			return nil, err
		}
	}
	if len(out.failed) > 0 {
		err = writeFailed(ctx, tx, out.failed, owing{p.Epoch, !p.SoldByStore()}, out.now)
	}
	return out, err
}

// decided has the decisions on a request's claims.
type decided struct {
	now      time.Time
	outcomes []store.ConfirmOutcome
	fresh    []seckill.Order // pending
	failed   []seckill.Order // with their release owed
	dead     []any           // numbers of orders that came again and whose mark must be released
	closed   []any           // numbers of claims that no longer need a letter
	units    int64           // of fresh
}

// decideClaims decides the claims in order. Each claim sees the decisions before it.
func decideClaims(p *seckill.Product, req *store.ConfirmRequest, known *facts, now time.Time) (*decided, error) {
	out := &decided{now: now, outcomes: make([]store.ConfirmOutcome, len(req.Items)), fresh: make([]seckill.Order, 0, len(req.Items))}
	for i := range req.Items {
		item := &req.Items[i]
		if item.ProductID != p.ID || item.Group != p.Group {
			return nil, fmt.Errorf("claim %s is of product %d in group %d, not %d in %d", item.Claim.OrderNo, item.ProductID, item.Group, p.ID, p.Group)
		}
		outcome, err := out.decideClaim(p, item, req.ExpireAfter, known)
		if err != nil {
			return nil, err
		}
		out.outcomes[i] = outcome
		if outcome != store.ConfirmOldEpoch {
			out.closed = append(out.closed, known.text[i])
		}
	}
	if out.units > p.Stock {
		return nil, fmt.Errorf("%w: %d units in store, %d promised", store.ErrShort, p.Stock, out.units)
	}
	return out, nil
}

func (out *decided) decideClaim(p *seckill.Product, item *store.Item, expireAfter time.Duration, known *facts) (store.ConfirmOutcome, error) {
	claim := &item.Claim
	if order, exists := known.orders[claim.OrderNo]; exists {
		if !order.marked() {
			out.dead = append(out.dead, claim.OrderNo.String())
		}
		return store.ConfirmReplay, nil
	}
	switch {
	case item.Epoch < p.Epoch && !p.SoldByStore():
		return store.ConfirmOldEpoch, nil
	case item.Epoch > p.Epoch:
		return 0, fmt.Errorf("%w: it is %d, claim %s is of %d", store.ErrEpoch, p.Epoch, claim.OrderNo, item.Epoch)
	}
	known.dropReservation(claim)
	order := item.Order()
	if known.keyTaken(claim) {
		order.Key = "" // the key belongs to the other order
		return store.ConfirmDuplicate, out.fail(order, seckill.ReasonDuplicate, known)
	}
	// The entry carries the ledger's limit, which somebody may have edited in Redis. The
	// product's limit has not changed since its first preheat.
	if known.units[claim.Buyer]+int64(claim.Quantity) > int64(min(item.Limit, p.PerUserLimit)) {
		return store.ConfirmOverLimit, out.fail(order, seckill.ReasonLimit, known)
	}
	if p.SoldByStore() && out.units+known.parked+int64(claim.Quantity) > p.Stock {
		return store.ConfirmSoldOut, out.fail(order, seckill.ReasonLost, known)
	}
	if err := order.Confirm(out.now, expireAfter); err != nil {
		return 0, err
	}
	out.fresh = append(out.fresh, order)
	out.units += int64(claim.Quantity)
	known.add(&order)
	return store.ConfirmNew, nil
}

func (out *decided) fail(order seckill.Order, reason string, known *facts) error {
	if err := order.Fail(out.now, reason); err != nil {
		return err
	}
	out.failed = append(out.failed, order)
	known.add(&order)
	return nil
}

// finishConfirm parks claims, closes letters, owes releases and raises the witness.
func finishConfirm(ctx context.Context, tx *session, p *productRow, req *store.ConfirmRequest, out *decided) error {
	dead := out.dead
	for i := range req.Park { // a claim that has its row by now gets no letter
		dead = append(dead, req.Park[i].Item.Claim.OrderNo.String())
	}
	if !p.SoldByStore() {
		if err := owe(ctx, tx, sqlOweAgain, p.Epoch, dead, out.now); err != nil {
			return err
		}
	}
	if err := closeLetters(ctx, tx, p.ID, out.closed, out.now); err != nil {
		return err
	}
	parked := req.Park
	if p.SoldByStore() {
		parked = slices.Clone(parked) // the caller may pass its slice again
		for i := range parked {
			parked[i].Item.Epoch = p.Epoch // that epoch reserves the claim's unit
		}
	}
	if err := park(ctx, tx, parked, out.now); err != nil {
		return err
	}
	return raiseWitness(ctx, tx, req.Witness)
}

// writeFailed writes failed orders of one product with their events.
func writeFailed(ctx context.Context, tx *session, failed []seckill.Order, owes owing, now time.Time) error {
	if len(failed) == 0 {
		return nil
	}
	var lost int64
	args := make([]any, 0, len(failed)*sqlInsertOrders.columns)
	for i := range failed {
		lost += int64(failed[i].Quantity)
		args = insertArgs(args, &failed[i], failed[i].OrderNo.String(), owes, millis(now))
	}
	if _, err := tx.execRows(ctx, sqlInsertOrders, nil, args); err != nil {
		return err
	}
	if err := writeOrderEvents(ctx, tx, seckill.EventOrderFailed, failed, now); err != nil {
		return err
	}
	return countUnits(ctx, tx, failed[0].ProductID, units{seckill.OrderFailed, lost})
}

// Fail writes failed orders for claims whose adoption was refused. If another worker had a
// claim adopted since, its new entry finds the failed row, or its new letter is closed here.
func (s *Store) Fail(ctx context.Context, items []store.Item, reason string) error {
	byProduct, groups := make(map[uint32][]store.Item), make(map[uint32]uint32)
	for _, item := range items {
		byProduct[item.ProductID] = append(byProduct[item.ProductID], item)
		groups[item.ProductID] = item.Group
	}
	return s.change(ctx, "fail", func(ctx context.Context, tx *session) error {
		if err := lockProducts(ctx, tx, groups); err != nil {
			return err
		}
		for product, items := range byProduct {
			if err := failItems(ctx, tx, product, items, reason, s.now()); err != nil {
				return err
			}
		}
		return nil
	})
}

func failItems(ctx context.Context, tx *session, product uint32, items []store.Item, reason string, now time.Time) error {
	p, err := lockProduct(ctx, tx, product)
	if err != nil {
		return err
	}
	known, err := readFacts(ctx, tx, items[0].Group, claimsOf(items))
	if err != nil {
		return err
	}
	out := &decided{now: now}
	for i := range items {
		if _, exists := known.orders[items[i].Claim.OrderNo]; exists {
			continue
		}
		order := items[i].Order()
		// The key of a duplicate belongs to the other order. That order may have no row yet,
		// and with the key here it would itself fail as a duplicate.
		if reason == seckill.ReasonDuplicate || known.keyTaken(&items[i].Claim) {
			order.Key = ""
		}
		if err := out.fail(order, reason, known); err != nil {
			return err
		}
	}
	if err := writeFailed(ctx, tx, out.failed, owing{}, now); err != nil {
		return err
	}
	if !p.SoldByStore() {
		if err := owe(ctx, tx, sqlOweLettered, p.Epoch, known.text, now); err != nil {
			return err
		}
	}
	return closeLetters(ctx, tx, product, known.text, now)
}
