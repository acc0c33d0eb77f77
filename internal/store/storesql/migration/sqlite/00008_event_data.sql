-- +goose Up

-- What an event of a sale or a refund carries, as JSON; NULL for events of an
-- order, and for events of the version before. It may be NULL, so that the
-- version before can still write.
ALTER TABLE tb_event ADD COLUMN data TEXT;

-- +goose Down
ALTER TABLE tb_event DROP COLUMN data;
