package storesql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill"
	"seckill/internal/store"
)

const (
	sqlKeepInstance   = `UPDATE tb_instance SET until_time = ?, shop = ?, silent = ? WHERE name = ? AND until_time > ?`
	sqlAddInstance    = `INSERT INTO tb_instance (name, until_time, shop, silent) VALUES (?, ?, ?, ?)`
	sqlRemoveInstance = `DELETE FROM tb_instance WHERE name = ?`
	sqlInstances      = `SELECT name, silent FROM tb_instance WHERE until_time > ? ORDER BY name`
	// A lease that ends so far in the future was given before the clock was set back
	// (leaseAhead).
	sqlShops = `SELECT COUNT(*) FROM tb_instance WHERE until_time > ? AND until_time <= ? AND shop = 1`
	// sqlForgetInstances removes rows of dead instances.
	sqlForgetInstances = `DELETE FROM tb_instance WHERE until_time < ?`

	sqlTakeOver = `UPDATE tb_seckill_product SET epoch = ?, seller = 1, store_open = 0, rebuilding = 0, version = version + 1
		WHERE id = ? AND version = ?`
	sqlOpenStore  = `UPDATE tb_seckill_product SET store_open = 1, version = version + 1 WHERE id = ? AND version = ?`
	sqlForgetAcks = `DELETE FROM tb_takeover_ack WHERE product_id = ?`
	// A late acknowledgement of an older epoch does not replace a newer one.
	sqlForgetAck   = `DELETE FROM tb_takeover_ack WHERE product_id = ? AND instance = ? AND epoch < ?`
	sqlAcknowledge = `INSERT INTO tb_takeover_ack (product_id, instance, epoch) SELECT ?, ?, ? FROM (SELECT 1) AS once
		WHERE NOT EXISTS (SELECT 1 FROM tb_takeover_ack WHERE product_id = ? AND instance = ?)`
	// sqlNotHandedOver counts the products of a limit group that block its opening: those that
	// their ledger sells, and those that are not open and that a live instance has not
	// acknowledged. An instance that starts after a product was opened acknowledges nothing for
	// it.
	sqlNotHandedOver = `SELECT COUNT(*) FROM tb_seckill_product p WHERE p.limit_group = ? AND p.epoch > 0 AND p.state <> 2 AND (p.seller = 0
		OR p.store_open = 0 AND EXISTS (SELECT 1 FROM tb_instance i WHERE i.until_time > ? AND NOT EXISTS (
			SELECT 1 FROM tb_takeover_ack a WHERE a.product_id = p.id AND a.instance = i.name AND a.epoch = p.epoch)))`
)

// instanceKept is how long the row of a dead instance stays.
const instanceKept = time.Hour

func (s *Store) KeepInstance(ctx context.Context, instance store.Instance, ttl time.Duration) (shops int, lapsed bool, err error) {
	err = s.change(ctx, "instance", func(ctx context.Context, tx *session) error {
		now := s.now()
		until := millis(now.Add(ttl))
		kept, err := tx.exec(ctx, sqlKeepInstance, until, instance.Shop, joinIDs(instance.Silent), instance.Name, millis(now))
		if err != nil {
			return err
		}
		if lapsed = kept == 0; lapsed {
			if err := addInstance(ctx, tx, instance, until, now); err != nil {
				return err
			}
		}
		_, err = tx.row(ctx, sqlShops, []any{millis(now), millis(now.Add(leaseAhead * ttl))}, &shops)
		return err
	})
	return shops, lapsed, err
}

// addInstance writes a new lease, and removes old rows of dead instances.
func addInstance(ctx context.Context, tx *session, instance store.Instance, until int64, now time.Time) error {
	if _, err := tx.exec(ctx, sqlForgetInstances, millis(now.Add(-instanceKept))); err != nil {
		return err
	}
	if _, err := tx.exec(ctx, sqlRemoveInstance, instance.Name); err != nil {
		return err
	}
	_, err := tx.exec(ctx, sqlAddInstance, instance.Name, until, instance.Shop, joinIDs(instance.Silent))
	return err
}

func (s *Store) LeaveInstance(ctx context.Context, instance string) error {
	return s.change(ctx, "instance", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlRemoveInstance, instance)
		return err
	})
}

func (s *Store) Instances(ctx context.Context) ([]store.Instance, error) {
	return listed(ctx, s, "list instances", sqlInstances, []any{millis(s.now())}, func(row scanner, one *store.Instance) (err error) {
		var silent string
		if err := row.Scan(&one.Name, &silent); err != nil {
			return err
		}
		one.Silent, err = splitIDs(silent)
		return err
	})
}

func joinIDs(ids []uint32) string {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendUint(text, uint64(id), 10)
	}
	return string(text)
}

func splitIDs(text string) ([]uint32, error) {
	var ids []uint32
	for word := range strings.FieldsSeq(text) {
		id, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the products of an instance: %w", err)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}

func (s *Store) TakeOver(ctx context.Context, id uint32, seen uint64, actor store.Actor) (seckill.Product, error) {
	return changed(ctx, s, "takeover", func(ctx context.Context, tx *session) (seckill.Product, error) {
		p, err := s.lockToChange(ctx, tx, id)
		if err != nil {
			return p.Product, err
		}
		switch {
		case !p.HasLedger():
			return p.Product, seckill.Errorf(seckill.CodeWrongState, "product %d is sold by the store always", id)
		case p.Epoch == 0:
			return p.Product, seckill.Errorf(seckill.CodeWrongState, "product %d was never preheated", id)
		case p.Epoch != seen:
			return p.Product, fmt.Errorf("%w: it is %d, not %d", store.ErrEpoch, p.Epoch, seen)
		case p.Seller == seckill.SellerStore:
			return p.Product, nil
		case p.Epoch >= store.MaxEpoch:
			return p.Product, seckill.Errorf(seckill.CodeWrongState, "there is no epoch above %d", p.Epoch)
		}
		if err := compared(tx.exec(ctx, sqlTakeOver, p.Epoch+1, id, p.Version)); err != nil {
			return p.Product, err
		}
		p.Epoch, p.Version, p.Seller, p.StoreOpen, p.Rebuilding = p.Epoch+1, p.Version+1, seckill.SellerStore, false, false
		if _, err := tx.exec(ctx, sqlForgetAcks, id); err != nil {
			return p.Product, err
		}
		if _, err := s.holdLetters(ctx, tx, &p.Product); err != nil {
			return p.Product, err
		}
		return p.Product, writeAudit(ctx, tx, s.now(), actor, "product.takeover", id, "", fmt.Sprintf("epoch %d -> %d, seller store", seen, p.Epoch))
	})
}

func (s *Store) Acknowledge(ctx context.Context, id uint32, epoch uint64, instance string) error {
	return s.change(ctx, "acknowledge", func(ctx context.Context, tx *session) error {
		if _, err := tx.exec(ctx, sqlForgetAck, id, instance, epoch); err != nil {
			return err
		}
		_, err := tx.exec(ctx, sqlAcknowledge, id, instance, epoch, id, instance)
		return err
	})
}

func (s *Store) OpenStore(ctx context.Context, id uint32, epoch uint64) (opened bool, err error) {
	err = s.change(ctx, "open", func(ctx context.Context, tx *session) error {
		p, err := s.lockToChange(ctx, tx, id)
		if err != nil {
			return err
		}
		if p.Epoch != epoch || p.Seller != seckill.SellerStore {
			return fmt.Errorf("%w: it is %d, seller %s", store.ErrEpoch, p.Epoch, p.Seller)
		}
		if opened = p.StoreOpen; opened {
			return nil
		}
		var waiting int64
		if _, err := tx.row(ctx, sqlNotHandedOver, []any{p.Group, millis(s.now())}, &waiting); err != nil || waiting > 0 {
			return err
		}
		opened = true
		return compared(tx.exec(ctx, sqlOpenStore, id, p.Version))
	})
	return opened && err == nil, err
}
