-- +goose Up

-- The secret that spreads buyers over a product's shards; 0 is none, as products
-- of the version before have. It has a default, so that the version before can
-- still write.
ALTER TABLE tb_seckill_product ADD COLUMN shard_key INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE tb_seckill_product DROP COLUMN shard_key;
