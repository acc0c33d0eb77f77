package storesql

import (
	"context"
	"fmt"

	"seckill"
	"seckill/internal/store"
)

// The version makes whoever reckons with the share read it again.
const sqlTakeShare = `UPDATE tb_seckill_product SET share_left = 0, version = version + 1 WHERE id = ? AND version = ?`

// TakeShare moves what is left of a share to the ledger's side.
func (s *Store) TakeShare(ctx context.Context, product uint32, changeID string, actor store.Actor) (store.StockChange, error) {
	if changeID == "" {
		return store.StockChange{}, seckill.Errorf(seckill.CodeBadRequest, "a stock change needs an id")
	}
	var change store.StockChange
	err := s.change(ctx, "share", func(ctx context.Context, tx *session) error {
		known, found, err := readStockChange(ctx, tx, changeID)
		switch {
		case err != nil:
			return err
		case found && (known.ProductID != product || !known.FromShare):
			return seckill.Errorf(seckill.CodeWrongState, "change id %q belongs to another change", changeID)
		case found:
			change = known
			return nil
		}
		change, err = s.takeShare(ctx, tx, store.StockChange{ID: changeID, ProductID: product, FromShare: true, Actor: actor})
		return err
	})
	if err != nil {
		return store.StockChange{}, err
	}
	return change, nil
}

func (s *Store) takeShare(ctx context.Context, tx *session, change store.StockChange) (store.StockChange, error) {
	p, err := s.readToChange(ctx, tx, change.ProductID)
	if err != nil {
		return change, err
	}
	if p.Epoch == 0 {
		return change, seckill.Errorf(seckill.CodeWrongState, "product %d was never preheated", p.ID)
	}
	change.Delta, change.Epoch, change.CreatedAt, change.Status = p.ShareLeft, p.Epoch, s.now(), store.ChangeOpen
	if change.Delta == 0 {
		change.Status = store.ChangeDone
		return change, nil
	}
	n, err := tx.exec(ctx, sqlTakeShare, p.ID, p.Version)
	if err != nil {
		return change, err
	}
	if n == 0 {
		return change, errVersion
	}
	if err := writeStockChange(ctx, tx, &change); err != nil {
		return change, err
	}
	detail := fmt.Sprintf("%d units of the share go to the ledger, change %s", change.Delta, change.ID)
	return change, writeAudit(ctx, tx, change.CreatedAt, change.Actor, "product.share", p.ID, "", detail)
}
