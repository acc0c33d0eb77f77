package storesql

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"seckill"
	"seckill/internal/store"
)

const productColumns = `id, ref, product_name, price_cents, currency, stock, offered, per_user_limit, limit_group,
	starts_at, ends_at, shards, strategy, fallback, seller, store_open, state, epoch, version, log_seq, rebuilding,
	started_time IS NOT NULL, ended_time IS NOT NULL, create_time, image_url, unlisted, test, shard_key`

const (
	sqlProduct  = `SELECT ` + productColumns + ` FROM tb_seckill_product WHERE id = ? AND deleting = 0`
	sqlProducts = `SELECT ` + productColumns + ` FROM tb_seckill_product WHERE id > ? AND deleting = 0 ORDER BY id LIMIT ?`
	// sqlIDTaken finds an id: 0 for one that is in use, 1 for one that was deleted.
	sqlIDTaken = `SELECT deleting FROM tb_seckill_product WHERE id = ? UNION ALL SELECT 1 FROM tb_deleted_product WHERE id = ?`

	// sqlCurrentGroups are the limit groups of current products. Each part uses an index.
	sqlCurrentGroups = `(SELECT limit_group AS current FROM tb_seckill_product WHERE ended_time IS NULL
		UNION SELECT limit_group FROM tb_seckill_product WHERE ended_time > ?
		UNION SELECT limit_group FROM tb_seckill_product WHERE seller = 1
		UNION SELECT limit_group FROM tb_seckill_product WHERE test = 1) AS current_groups`
	sqlCurrentProducts = `SELECT ` + productColumns + ` FROM ` + sqlCurrentGroups + `
		JOIN tb_seckill_product ON limit_group = current WHERE deleting = 0 ORDER BY id`

	sqlInsertProduct = `INSERT INTO tb_seckill_product (id, ref, product_name, price_cents, currency, stock, offered,
		per_user_limit, limit_group, starts_at, ends_at, shards, strategy, fallback, seller, store_open, state, epoch, version, log_seq,
		rebuilding, create_time, image_url, unlisted, test, shard_key) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,?,0,1,0,0,?,?,?,?,?)`

	sqlPatchProduct = `UPDATE tb_seckill_product SET ref = ?, product_name = ?, price_cents = ?, currency = ?,
		per_user_limit = ?, starts_at = ?, ends_at = ?, image_url = ?, unlisted = ? WHERE id = ?`

	sqlGroupDeleting = `SELECT id FROM tb_seckill_product WHERE limit_group = ? AND deleting = 1 LIMIT 1`

	sqlGroupShared = `SELECT 1 FROM tb_seckill_product WHERE limit_group = ? AND id <> ? AND deleting = 0 LIMIT 1`

	// sqlFirstStock sets stock and offered of a new product without a new version.
	sqlFirstStock = `UPDATE tb_seckill_product SET stock = ?, offered = ?, log_seq = 1 WHERE id = ?`

	// The new version makes a concurrent sale by the store fail and read the state again. So
	// nothing is sold after a pause.
	sqlSetState     = `UPDATE tb_seckill_product SET state = ?, version = version + 1 WHERE id = ?`
	sqlInstructed   = `SELECT 1 FROM tb_audit WHERE product_id = ? AND detail = ? AND detail <> '' LIMIT 1`
	sqlBeginRebuild = `UPDATE tb_seckill_product SET rebuilding = 1 WHERE id = ? AND epoch = ? AND seller = 0`
	sqlEndRebuild   = `UPDATE tb_seckill_product SET rebuilding = 0 WHERE id = ?`
	sqlGroupTaken   = `SELECT id FROM tb_seckill_product WHERE limit_group = ? AND seller = 1 AND deleting = 0 LIMIT 1`

	sqlAnnounceStarted = `UPDATE tb_seckill_product SET started_time = ? WHERE id = ? AND started_time IS NULL`
	sqlAnnounceEnded   = `UPDATE tb_seckill_product SET ended_time = ?, uncounted = CASE WHEN epoch > 0 THEN 1 ELSE 0 END WHERE id = ? AND ended_time IS NULL`
)

// productRow is a product with its columns that only the store uses.
type productRow struct {
	seckill.Product
	logSeq         int64
	started, ended bool // whether sale.started and sale.ended were written
}

func scanProduct(row scanner, p *productRow) error {
	err := row.Scan(&p.ID, &p.Ref, &p.Name, &p.PriceCents, &p.Currency, &p.Stock, &p.Offered, &p.PerUserLimit, &p.Group,
		millisTime{&p.StartsAt}, millisTime{&p.EndsAt}, &p.Shards, &p.Strategy, &p.Fallback, &p.Seller, &p.StoreOpen, &p.State,
		&p.Epoch, &p.Version, &p.logSeq, &p.Rebuilding, &p.started, &p.ended, millisTime{&p.CreatedAt},
		&p.ImageURL, &p.Unlisted, &p.Test, &p.ShardKey)
	if err != nil {
		return fmt.Errorf("read product: %w", err)
	}
	return nil
}

func readProduct(ctx context.Context, r *session, id uint32) (productRow, error) {
	return queryProduct(ctx, r, sqlProduct, id)
}

func queryProduct(ctx context.Context, r *session, query string, id uint32) (productRow, error) {
	p, found, err := selectOne(ctx, r, query, []any{id}, scanProduct)
	if err == nil && !found {
		err = seckill.Errorf(seckill.CodeNotFound, "no product %d", id)
	}
	return p, err
}

// lockToChange locks and reads a product before a compare-and-set.
func (s *Store) lockToChange(ctx context.Context, tx *session, id uint32) (productRow, error) {
	p, err := lockProduct(ctx, tx, id)
	if err == nil && s.afterRead != nil {
		err = s.afterRead(ctx, tx, id)
	}
	return p, err
}

func (s *Store) Product(ctx context.Context, id uint32) (seckill.Product, error) {
	var p productRow
	err := s.read(ctx, "read product", func(ctx context.Context, r *session) (err error) {
		p, err = readProduct(ctx, r, id)
		return err
	})
	return p.Product, err
}

func (s *Store) Products(ctx context.Context, filter store.ProductFilter) ([]seckill.Product, error) {
	return s.listProducts(ctx, sqlProducts, filter.After, filter.Limit)
}

func (s *Store) CurrentProducts(ctx context.Context) ([]seckill.Product, error) {
	return s.listProducts(ctx, sqlCurrentProducts, s.currentSince())
}

// currentSince is the time from which an ended sale is still current.
func (s *Store) currentSince() int64 { return millis(s.now().Add(-store.CurrentFor)) }

func (s *Store) listProducts(ctx context.Context, query string, args ...any) ([]seckill.Product, error) {
	return listed(ctx, s, "list products", query, args, func(row scanner, p *seckill.Product) error {
		var whole productRow
		err := scanProduct(row, &whole)
		*p = whole.Product
		return err
	})
}

func (s *Store) CreateProduct(ctx context.Context, p seckill.Product, actor store.Actor) (seckill.Product, error) {
	if p.Group == 0 {
		p.Group = p.ID
	}
	if err := p.Check(); err != nil {
		return seckill.Product{}, err
	}
	key, err := s.newShardKey(&p)
	if err != nil {
		return seckill.Product{}, err
	}
	var created productRow
	err = s.change(ctx, "create", func(ctx context.Context, tx *session) error {
		now := s.now()
		p.ShardKey = key
		if err := checkFree(ctx, tx, p.ID); err != nil {
			return err
		}
		if err := checkGroup(ctx, tx, &p); err != nil {
			return err
		}
		_, err := tx.exec(ctx, sqlInsertProduct, p.ID, p.Ref, p.Name, p.PriceCents, p.Currency, 0, 0, p.PerUserLimit, p.Group,
			millis(p.StartsAt), millis(p.EndsAt), p.Shards, string(p.Strategy), string(p.Fallback), seckill.SaleOpen, millis(now), p.ImageURL,
			p.Unlisted, p.Test, p.ShardKey)
		if err != nil {
			return err
		}
		if p.Stock > 0 {
			if err := firstStock(ctx, tx, &p, now); err != nil {
				return err
			}
		}
		detail := fmt.Sprintf("%d units of %q at %s", p.Stock, p.Name, amount(p.PriceCents, p.Currency))
		if err := writeAudit(ctx, tx, now, actor, "product.create", p.ID, "", detail); err != nil {
			return err
		}
		if created, err = readProduct(ctx, tx, p.ID); err != nil {
			return err
		}
		return writeCountedEvent(ctx, tx, &created, seckill.EventSaleCreated, now)
	})
	return created.Product, err
}

// checkFree refuses an id that is or was in use. Old messages, such as an entry that a broker
// delivers again, must not reach another product.
func checkFree(ctx context.Context, tx *session, id uint32) error {
	var deleted int
	found, err := tx.row(ctx, sqlIDTaken, []any{id, id}, &deleted)
	switch {
	case err != nil || !found:
		return err
	case deleted != 0:
		return seckill.Errorf(seckill.CodeWrongState, "product %d was deleted; its id cannot be used again", id)
	}
	return seckill.Errorf(seckill.CodeWrongState, "product %d exists", id)
}

// newShardKey draws the secret that spreads buyers over the shards. It is 0 if there is one
// shard.
func (s *Store) newShardKey(p *seckill.Product) (int64, error) {
	if p.Shards <= 1 {
		return 0, nil
	}
	var random [8]byte
	if _, err := io.ReadFull(s.opt.Random, random[:]); err != nil {
		return 0, fmt.Errorf("make the shard key of product %d: %w", p.ID, err)
	}
	return int64(binary.BigEndian.Uint64(random[:])), nil
}

// firstStock gives a new product its stock with the first stock-log row.
func firstStock(ctx context.Context, tx *session, p *seckill.Product, now time.Time) error {
	_, err := tx.exec(ctx, sqlFirstStock, p.Stock, p.Stock, p.ID)
	if err != nil {
		return err
	}
	row := []any{p.ID, 1, nil, p.Stock, 0, p.Stock, logOperator, millis(now)}
	_, err = tx.execRows(ctx, sqlInsertStockLog, nil, row)
	return err
}

// checkGroup checks that members of a limit group share limit and number of shards, and gives
// them the owner's shard key: a buyer's marks are stored next to the shard with the same index.
func checkGroup(ctx context.Context, tx *session, p *seckill.Product) error {
	if p.Group == p.ID {
		return nil
	}
	owner, err := lockProduct(ctx, tx, p.Group) // a change of the owner's limit must wait for this transaction
	switch {
	case seckill.CodeNotFound.In(err):
		return seckill.Errorf(seckill.CodeBadRequest, "limit_group %d is not a product", p.Group)
	case err != nil:
		return err
	case owner.Group != owner.ID:
		return seckill.Errorf(seckill.CodeBadRequest, "limit_group %d belongs to group %d itself", p.Group, owner.Group)
	case owner.PerUserLimit != p.PerUserLimit:
		return seckill.Errorf(seckill.CodeBadRequest, "per_user_limit must be %d as in limit_group %d", owner.PerUserLimit, p.Group)
	case owner.Shards != p.Shards:
		return seckill.Errorf(seckill.CodeBadRequest, "shards must be %d as in limit_group %d", owner.Shards, p.Group)
	case owner.HasLedger() != p.HasLedger():
		return seckill.Errorf(seckill.CodeBadRequest, "limit_group %d has strategy %s; direct products share a limit with direct ones only", p.Group, owner.Strategy)
	case owner.Test != p.Test:
		return seckill.Errorf(seckill.CodeBadRequest, "test products share a limit with test products only; limit_group %d has test %t", p.Group, owner.Test)
	}
	p.ShardKey = owner.ShardKey
	var deleting uint32
	found, err := tx.row(ctx, sqlGroupDeleting, []any{p.Group}, &deleting)
	if err == nil && found { // until it is deleted, ledger and store count its units differently
		err = seckill.Errorf(seckill.CodeWrongState, "product %d of limit_group %d is being deleted; try again when it is deleted", deleting, p.Group)
	}
	return err
}

func (s *Store) PatchProduct(ctx context.Context, id uint32, patch store.ProductPatch, actor store.Actor) (seckill.Product, error) {
	return changed(ctx, s, "patch", func(ctx context.Context, tx *session) (seckill.Product, error) {
		p, err := lockProduct(ctx, tx, id)
		if err != nil {
			return p.Product, err
		}
		before := p.Product
		changes := applyPatch(&p.Product, patch)
		if p.Epoch > 0 && (p.Currency != before.Currency || p.PerUserLimit != before.PerUserLimit) {
			return p.Product, seckill.Errorf(seckill.CodeWrongState, "currency and per_user_limit are fixed by the first preheat")
		}
		if p.ended && (!p.StartsAt.Equal(before.StartsAt) || !p.EndsAt.Equal(before.EndsAt)) {
			return p.Product, seckill.Errorf(seckill.CodeWrongState, "product %d has ended; starts_at and ends_at are fixed", id)
		}
		if err := p.Check(); err != nil {
			return p.Product, err
		}
		if p.PerUserLimit != before.PerUserLimit {
			shared, err := tx.row(ctx, sqlGroupShared, []any{p.Group, id}, new(int))
			if err != nil {
				return p.Product, err
			}
			if shared {
				return p.Product, seckill.Errorf(seckill.CodeBadRequest, "per_user_limit is shared by limit_group %d", p.Group)
			}
		}
		_, err = tx.exec(ctx, sqlPatchProduct, p.Ref, p.Name, p.PriceCents, p.Currency, p.PerUserLimit,
			millis(p.StartsAt), millis(p.EndsAt), p.ImageURL, p.Unlisted, id)
		if err != nil {
			return p.Product, err
		}
		return p.Product, writeAudit(ctx, tx, s.now(), actor, "product.patch", id, "", strings.Join(changes, ", "))
	})
}

// applyPatch changes p and returns the changes for the audit.
func applyPatch(p *seckill.Product, patch store.ProductPatch) (changes []string) {
	set(&changes, "name", &p.Name, patch.Name)
	set(&changes, "ref", &p.Ref, patch.Ref)
	set(&changes, "image_url", &p.ImageURL, patch.ImageURL)
	set(&changes, "unlisted", &p.Unlisted, patch.Unlisted)
	set(&changes, "price_cents", &p.PriceCents, patch.PriceCents)
	set(&changes, "currency", &p.Currency, patch.Currency)
	set(&changes, "per_user_limit", &p.PerUserLimit, patch.PerUserLimit)
	setTime(&changes, "starts_at", &p.StartsAt, patch.StartsAt)
	setTime(&changes, "ends_at", &p.EndsAt, patch.EndsAt)
	return changes
}

// set sets a field if a value is given, and records the change.
func set[T any](changes *[]string, name string, field, value *T) {
	if value != nil {
		*changes = append(*changes, fmt.Sprintf("%s %v -> %v", name, *field, *value))
		*field = *value
	}
}

func setTime(changes *[]string, name string, field, value *time.Time) {
	if value != nil {
		before := field.Format(time.RFC3339)
		*field = value.UTC().Truncate(time.Millisecond)
		*changes = append(*changes, fmt.Sprintf("%s %s -> %s", name, before, field.Format(time.RFC3339)))
	}
}

var stateActions = map[seckill.SaleState]string{
	seckill.SaleOpen: "product.resume", seckill.SalePaused: "product.pause", seckill.SaleEnded: "product.end",
}

func (s *Store) SetState(ctx context.Context, id uint32, in seckill.Instruction) (seckill.Product, error) {
	action, known := stateActions[in.State]
	if !known {
		return seckill.Product{}, seckill.Errorf(seckill.CodeBadRequest, "unknown sale state %d", in.State)
	}
	return changed(ctx, s, "state", func(ctx context.Context, tx *session) (seckill.Product, error) {
		p, err := lockProduct(ctx, tx, id)
		if err != nil || in.ID == "" && p.State == in.State {
			return p.Product, err
		}
		done, err := tx.row(ctx, sqlInstructed, []any{id, instructed(&in)}, new(int))
		if err != nil || done {
			return p.Product, err
		}
		if p.State == seckill.SaleEnded && in.State != seckill.SaleEnded {
			return p.Product, seckill.Errorf(seckill.CodeWrongState, "product %d has ended", id)
		}
		now := s.now()
		if err := moveState(ctx, tx, &p, in.State, now); err != nil {
			return p.Product, err
		}
		actor := store.Actor{Name: in.Actor, Reason: in.Reason}
		return p.Product, writeAudit(ctx, tx, now, actor, action, id, "", instructed(&in))
	})
}

// instructed returns the detail of the audit line that identifies an instruction.
func instructed(in *seckill.Instruction) string {
	if in.ID == "" {
		return ""
	}
	return fmt.Sprintf("instruction %s, given %s", in.ID, in.At.UTC().Format(time.RFC3339))
}

func moveState(ctx context.Context, tx *session, p *productRow, state seckill.SaleState, now time.Time) error {
	if p.State == state {
		return nil
	}
	if _, err := tx.exec(ctx, sqlSetState, state, p.ID); err != nil {
		return err
	}
	p.State, p.Version = state, p.Version+1
	return writeStateEvent(ctx, tx, p, now)
}

// writeStateEvent writes the event of the sale's new state.
func writeStateEvent(ctx context.Context, tx *session, p *productRow, now time.Time) error {
	switch p.State {
	case seckill.SalePaused:
		return writeSaleEvent(ctx, tx, p, seckill.EventSalePaused, now)
	case seckill.SaleEnded:
		_, err := announce(ctx, tx, p, seckill.EventSaleEnded, now)
		return err
	}
	return writeSaleEvent(ctx, tx, p, seckill.EventSaleResumed, now)
}

func (s *Store) Announce(ctx context.Context, id uint32, kind seckill.EventKind) (wrote bool, err error) {
	if kind != seckill.EventSaleStarted && kind != seckill.EventSaleEnded {
		return false, seckill.Errorf(seckill.CodeBadRequest, "cannot announce %q", kind)
	}
	// Usually the event was written before. This read saves the write.
	var p productRow
	err = s.read(ctx, "announce", func(ctx context.Context, r *session) (err error) {
		p, err = readProduct(ctx, r, id)
		return err
	})
	if err != nil || kind == seckill.EventSaleStarted && p.started || kind == seckill.EventSaleEnded && p.ended {
		return false, err
	}
	err = s.change(ctx, "announce", func(ctx context.Context, tx *session) (err error) {
		if p, err = lockProduct(ctx, tx, id); err != nil {
			return err
		}
		wrote, err = announce(ctx, tx, &p, kind, s.now())
		return err
	})
	return wrote && err == nil, err
}

// announce writes the event for a product that the transaction has locked.
func announce(ctx context.Context, tx *session, p *productRow, kind seckill.EventKind, now time.Time) (bool, error) {
	query := sqlAnnounceStarted
	if kind == seckill.EventSaleEnded {
		query = sqlAnnounceEnded
	}
	n, err := tx.exec(ctx, query, millis(now), p.ID)
	if err != nil || n == 0 {
		return false, err
	}
	return true, writeCountedEvent(ctx, tx, p, kind, now)
}

func (s *Store) BeginRebuild(ctx context.Context, id uint32, epoch uint64) error {
	return s.change(ctx, "rebuilding", func(ctx context.Context, tx *session) error {
		_, err := tx.exec(ctx, sqlBeginRebuild, id, epoch)
		return err
	})
}

func (s *Store) EndRebuild(ctx context.Context, id uint32, epoch uint64) error {
	return s.change(ctx, "rebuilding", func(ctx context.Context, tx *session) error {
		p, err := s.lockToChange(ctx, tx, id)
		if err != nil {
			return err
		}
		if p.Epoch != epoch || p.Seller == seckill.SellerStore {
			return fmt.Errorf("%w: it is %d, seller %s", store.ErrEpoch, p.Epoch, p.Seller)
		}
		var taken uint32
		found, err := tx.row(ctx, sqlGroupTaken, []any{p.Group}, &taken)
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("%w: the store sells product %d of the same limit group", store.ErrEpoch, taken)
		}
		_, err = tx.exec(ctx, sqlEndRebuild, id)
		return err
	})
}
