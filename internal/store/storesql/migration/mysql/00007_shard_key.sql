-- +goose Up

-- The secret that spreads buyers over a product's shards; 0 is none, as products
-- of the version before have. It has a default, so that the version before can
-- still write. As in 00002: a migration that was broken off finds it done.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'tb_seckill_product' AND column_name = 'shard_key');
SET @alter_product = IF(@missing, 'ALTER TABLE tb_seckill_product ADD COLUMN shard_key BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE alter_product FROM @alter_product;
EXECUTE alter_product;
DEALLOCATE PREPARE alter_product;

-- +goose Down
ALTER TABLE tb_seckill_product DROP COLUMN shard_key;
