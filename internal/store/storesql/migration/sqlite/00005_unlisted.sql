-- +goose Up

-- Whether the product is kept out of the public list. It has a default, so that
-- the version before can still write.
ALTER TABLE tb_seckill_product ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE tb_seckill_product DROP COLUMN unlisted;
