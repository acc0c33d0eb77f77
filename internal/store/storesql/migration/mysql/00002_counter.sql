-- +goose Up

-- Orders that the store sells itself: directly, or from the fallback share.
-- Every column has a default, so that the version before can still write.
--
-- Each ALTER is whole by itself but the three are not: a migration that was
-- broken off finds the first done. MySQL has no ADD COLUMN IF NOT EXISTS, so
-- the catalogue is asked. What @alter_ would do twice, it does not do at all.

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'tb_seckill_product' AND column_name = 'share_left');
-- share_left: part of stock that is not the ledger's
SET @alter_product = IF(@missing, 'ALTER TABLE tb_seckill_product ADD COLUMN share_left BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE alter_product FROM @alter_product;
EXECUTE alter_product;
DEALLOCATE PREPARE alter_product;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'tb_seckill_order' AND column_name = 'origin');
-- origin: 0 ledger, 1 fallback, 2 direct; the figures still read no order row
SET @alter_order = IF(@missing, 'ALTER TABLE tb_seckill_order ADD COLUMN origin TINYINT NOT NULL DEFAULT 0,
    DROP KEY ix_order_figures,
    ADD KEY ix_order_figures (product_id, status, epoch, shard, release_epoch, origin, quantity)', 'DO 0');
PREPARE alter_order FROM @alter_order;
EXECUTE alter_order;
DEALLOCATE PREPARE alter_order;

SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'tb_stock_change' AND column_name = 'from_share');
-- from_share: 1 moves the share, adds nothing to stock
SET @alter_change = IF(@missing, 'ALTER TABLE tb_stock_change ADD COLUMN from_share TINYINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE alter_change FROM @alter_change;
EXECUTE alter_change;
DEALLOCATE PREPARE alter_change;

-- +goose Down
ALTER TABLE tb_stock_change DROP COLUMN from_share;
ALTER TABLE tb_seckill_order DROP KEY ix_order_figures,
    ADD KEY ix_order_figures (product_id, status, epoch, shard, release_epoch, quantity),
    DROP COLUMN origin;
ALTER TABLE tb_seckill_product DROP COLUMN share_left;
