-- +goose Up

-- The product's picture. It has a default, so that the version before can still
-- write.
ALTER TABLE tb_seckill_product ADD COLUMN image_url TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tb_seckill_product DROP COLUMN image_url;
