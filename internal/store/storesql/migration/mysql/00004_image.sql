-- +goose Up

-- The product's picture. It has a default, so that the version before can still
-- write. As in 00002: a migration that was broken off finds it done.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'tb_seckill_product' AND column_name = 'image_url');
SET @alter_product = IF(@missing, 'ALTER TABLE tb_seckill_product ADD COLUMN image_url VARBINARY(500) NOT NULL DEFAULT \'\'', 'DO 0');
PREPARE alter_product FROM @alter_product;
EXECUTE alter_product;
DEALLOCATE PREPARE alter_product;

-- +goose Down
ALTER TABLE tb_seckill_product DROP COLUMN image_url;
