-- +goose Up

-- Orders that the store sells itself: directly, or from the fallback share.
-- Every column has a default, so that the version before can still write.
ALTER TABLE tb_seckill_product ADD COLUMN share_left INTEGER NOT NULL DEFAULT 0; -- part of stock that is not the ledger's
ALTER TABLE tb_seckill_order ADD COLUMN origin INTEGER NOT NULL DEFAULT 0; -- 0 ledger, 1 fallback, 2 direct
ALTER TABLE tb_stock_change ADD COLUMN from_share INTEGER NOT NULL DEFAULT 0; -- 1: moves the share, adds nothing to stock
-- As before, with the origin: a product's figures still read no order row.
DROP INDEX ix_order_figures;
CREATE INDEX ix_order_figures ON tb_seckill_order (product_id, status, epoch, shard, release_epoch, origin, quantity);

-- +goose Down
DROP INDEX ix_order_figures;
CREATE INDEX ix_order_figures ON tb_seckill_order (product_id, status, epoch, shard, release_epoch, quantity);
ALTER TABLE tb_stock_change DROP COLUMN from_share;
ALTER TABLE tb_seckill_order DROP COLUMN origin;
ALTER TABLE tb_seckill_product DROP COLUMN share_left;
