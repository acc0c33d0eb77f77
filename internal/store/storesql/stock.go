package storesql

import (
	"context"
	"fmt"
	"time"

	"seckill"
	"seckill/internal/store"
)

// The types of a stock-log row.
const (
	logSold     = 1
	logReturned = 2
	logOperator = 3
)

const (
	// sqlMoveStock is the compare-and-set of every change of stock. Its arguments are the
	// deltas of stock and offered, the number of new stock-log rows, and the delta of stock
	// again.
	sqlMoveStock = `UPDATE tb_seckill_product SET stock = stock + ?, offered = offered + ?, log_seq = log_seq + ?, version = version + 1
		WHERE id = ? AND version = ? AND stock + ? >= 0`

	stockChangeColumns = `id, product_id, delta, epoch, status, actor, reason, create_time`

	sqlStockChange       = `SELECT ` + stockChangeColumns + ` FROM tb_stock_change WHERE id = ?`
	sqlStockChangesDue   = `SELECT ` + stockChangeColumns + ` FROM tb_stock_change WHERE status = 'open' AND `
	sqlStockChangesOrder = ` ORDER BY create_time, id LIMIT ?`
	sqlInsertStockChange = `INSERT INTO tb_stock_change (id, product_id, delta, epoch, status, actor, reason, create_time, done_time)
		VALUES (?,?,?,?,?,?,?,?,?)`
	sqlEndStockChange     = `UPDATE tb_stock_change SET status = ?, done_time = ? WHERE id = ? AND status = 'open' AND epoch = ?`
	sqlRestampStockChange = `UPDATE tb_stock_change SET epoch = ? WHERE id = ? AND status = 'open' AND epoch <= ?`
)

var sqlInsertStockLog = list{
	head:    `INSERT INTO tb_stock_log (product_id, seq, order_no, quantity, before_stock, after_stock, type, create_time) VALUES `,
	columns: 8,
}

// stockMove is one stock-log row to write.
type stockMove struct {
	orderNo  any // as text, or nil for an operator's change
	quantity int64
	delta    int64 // the change of the stock
}

// moveStock changes the product's stock and writes one stock-log row per move (I6). The rows
// continue p.logSeq and p.Stock. The version guarantees that both are still as read. offered is
// the change of offered.
func moveStock(ctx context.Context, tx *session, p *productRow, kind int, moves []stockMove, offered int64, now time.Time) error {
	var delta int64
	args := make([]any, 0, len(moves)*sqlInsertStockLog.columns)
	stock, seq, at := p.Stock, p.logSeq, millis(now)
	for i := range moves {
		m := &moves[i]
		seq++
		args = append(args, p.ID, seq, m.orderNo, m.quantity, stock, stock+m.delta, kind, at)
		stock += m.delta
		delta += m.delta
	}
	if err := compared(tx.exec(ctx, sqlMoveStock, delta, offered, len(moves), p.ID, p.Version, delta)); err != nil {
		return err
	}
	if _, err := tx.execRows(ctx, sqlInsertStockLog, nil, args); err != nil {
		return err
	}
	p.Stock, p.Offered = stock, p.Offered+offered
	p.logSeq, p.Version = seq, p.Version+1
	return nil
}

func scanStockChange(row scanner, c *store.StockChange) error {
	return row.Scan(&c.ID, &c.ProductID, &c.Delta, &c.Epoch, &c.Status,
		&c.Actor.Name, &c.Actor.Reason, millisTime{&c.CreatedAt})
}

func readStockChange(ctx context.Context, r *session, id string) (c store.StockChange, found bool, err error) {
	return selectOne(ctx, r, sqlStockChange, []any{id}, scanStockChange)
}

func (s *Store) BeginStockChange(ctx context.Context, change store.StockChange) (store.StockChange, error) {
	if change.ID == "" || change.Delta == 0 {
		return store.StockChange{}, seckill.Errorf(seckill.CodeBadRequest, "a stock change needs an id and a delta")
	}
	return changed(ctx, s, "stock", func(ctx context.Context, tx *session) (store.StockChange, error) {
		known, found, err := readStockChange(ctx, tx, change.ID)
		if err != nil || found {
			return known, err
		}
		begun := change
		err = s.beginStockChange(ctx, tx, &begun)
		return begun, err
	})
}

func (s *Store) beginStockChange(ctx context.Context, tx *session, change *store.StockChange) error {
	p, err := s.lockToChange(ctx, tx, change.ProductID)
	if err != nil {
		return err
	}
	now := s.now()
	parked, err := parkedUnits(ctx, tx, &p.Product)
	if err != nil {
		return err
	}
	alone := p.Epoch == 0 || p.SoldByStore() && !p.TakingOver() // no ledger sells the units
	switch {
	case -change.Delta > p.Stock-parked:
		return seckill.Errorf(seckill.CodeBadRequest, "the stock is %d, of which %d are reserved for parked claims; it cannot change by %d", p.Stock, parked, change.Delta)
	case change.Delta > seckill.MaxStock-p.Offered:
		return seckill.Errorf(seckill.CodeBadRequest, "offered would exceed %d", seckill.MaxStock)
	}
	change.Epoch, change.CreatedAt, change.Status = p.Epoch, now, store.ChangeOpen
	if alone {
		change.Status = store.ChangeDone
	}
	if change.Delta > 0 || change.Status == store.ChangeDone {
		if err := operatorMove(ctx, tx, &p, change.Delta, now); err != nil {
			return err
		}
	}
	if err := writeStockChange(ctx, tx, change); err != nil {
		return err
	}
	what := "%+d, change %s" // it is done here
	if change.Status == store.ChangeOpen && change.Delta < 0 {
		what = "%+d asked for, change %s" // the ledger decides
	}
	return writeAudit(ctx, tx, now, change.Actor, "product.stock", p.ID, "", fmt.Sprintf(what, change.Delta, change.ID))
}

func writeStockChange(ctx context.Context, tx *session, c *store.StockChange) error {
	var done time.Time
	if c.Status == store.ChangeDone {
		done = c.CreatedAt
	}
	_, err := tx.exec(ctx, sqlInsertStockChange, c.ID, c.ProductID, c.Delta, c.Epoch, c.Status,
		c.Actor.Name, c.Actor.Reason, millis(c.CreatedAt), nullMillis(done))
	return err
}

// operatorMove changes stock and offered.
func operatorMove(ctx context.Context, tx *session, p *productRow, delta int64, now time.Time) error {
	move := stockMove{quantity: delta, delta: delta}
	soldOut, err := wasSoldOut(ctx, tx, p)
	if err != nil {
		return err
	}
	if err := moveStock(ctx, tx, p, logOperator, []stockMove{move}, delta, now); err != nil || !soldOut {
		return err
	}
	return writeSaleEvent(ctx, tx, p, seckill.EventSaleBackInStock, now)
}

func (s *Store) StockChangesDue(ctx context.Context, limit int, except ...uint32) ([]store.StockChange, error) {
	others := exceptProducts(except)
	query := sqlStockChangesDue + others.text() + sqlStockChangesOrder
	return listed(ctx, s, "list stock changes", query, others.with(limit), scanStockChange)
}

// openStockChange runs fn on a change that is not done, and returns it.
func (s *Store) openStockChange(ctx context.Context, id string, fn func(ctx context.Context, tx *session, c *store.StockChange) error) (store.StockChange, error) {
	return changed(ctx, s, "stock", func(ctx context.Context, tx *session) (store.StockChange, error) {
		c, found, err := readStockChange(ctx, tx, id)
		switch {
		case err == nil && !found:
			return c, seckill.Errorf(seckill.CodeNotFound, "no stock change %q", id)
		case err != nil || c.Status != store.ChangeOpen:
			return c, err
		}
		err = fn(ctx, tx, &c)
		return c, err
	})
}

func (s *Store) FinishStockChange(ctx context.Context, id string, epoch uint64, refused bool) (store.StockChange, error) {
	return s.openStockChange(ctx, id, func(ctx context.Context, tx *session, c *store.StockChange) error {
		now := s.now()
		if c.Delta < 0 && c.Epoch != epoch {
			return fmt.Errorf("%w: the change is of epoch %d, the decision of epoch %d", store.ErrEpoch, c.Epoch, epoch)
		}
		c.Status = store.ChangeDone
		switch {
		case refused && c.Delta > 0:
			return seckill.Errorf(seckill.CodeWrongState, "stock change %q was applied already and cannot be refused", id)
		case refused:
			c.Status = store.ChangeRefused
		case c.Delta < 0:
			p, err := s.lockToChange(ctx, tx, c.ProductID)
			if err != nil {
				return err
			}
			if p.Epoch != c.Epoch {
				return fmt.Errorf("%w: it is %d, that of the change is %d", store.ErrEpoch, p.Epoch, c.Epoch)
			}
			if c.Status, err = removeUnits(ctx, tx, &p, -c.Delta, now); err != nil {
				return err
			}
		}
		// It may have ended or been restamped since it was read.
		err := compared(tx.exec(ctx, sqlEndStockChange, c.Status, millis(now), id, c.Epoch))
		if err != nil || c.Delta > 0 {
			return err
		}
		return writeAudit(ctx, tx, now, c.Actor, "product.stock", c.ProductID, "", fmt.Sprintf("%+d, change %s is %s", c.Delta, id, c.Status))
	})
}

// removeUnits takes the units of an operator's down change from stock and offered. Units that the
// ledger granted must be there. While the store is the seller, the store decides, as soon as it
// knows every promise.
func removeUnits(ctx context.Context, tx *session, p *productRow, units int64, now time.Time) (status store.ChangeStatus, err error) {
	parked, err := parkedUnits(ctx, tx, &p.Product)
	switch {
	case err != nil:
		return "", err
	case p.TakingOver():
		return "", seckill.Errorf(seckill.CodeBusy, "product %d is being taken over; the change waits until the store sells", p.ID)
	case p.SoldByStore() && units > p.Stock-parked:
		return store.ChangeRefused, nil
	case units > p.Stock:
		return "", fmt.Errorf("%w: %d units, change by %d", store.ErrShort, p.Stock, -units)
	}
	return store.ChangeDone, operatorMove(ctx, tx, p, -units, now)
}

func (s *Store) RestampStockChange(ctx context.Context, id string) (store.StockChange, error) {
	return s.openStockChange(ctx, id, func(ctx context.Context, tx *session, c *store.StockChange) error {
		if c.Delta > 0 {
			return nil
		}
		p, err := readProduct(ctx, tx, c.ProductID)
		if err != nil {
			return err
		}
		c.Epoch = p.Epoch
		// It may have ended or been restamped again since it was read.
		return compared(tx.exec(ctx, sqlRestampStockChange, p.Epoch, id, p.Epoch))
	})
}
