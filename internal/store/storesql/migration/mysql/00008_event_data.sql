-- +goose Up

-- What an event of a sale or a refund carries, as JSON; NULL for events of an
-- order, and for events of the version before. It may be NULL, so that the
-- version before can still write. TEXT and not JSON: MariaDB's JSON has a check
-- constraint, for which it would copy the whole table here. As in 00002: a
-- migration that was broken off finds it done.
SET @missing = (SELECT COUNT(*) = 0 FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'tb_event' AND column_name = 'data');
SET @alter_event = IF(@missing, 'ALTER TABLE tb_event ADD COLUMN data TEXT', 'DO 0');
PREPARE alter_event FROM @alter_event;
EXECUTE alter_event;
DEALLOCATE PREPARE alter_event;

-- +goose Down
ALTER TABLE tb_event DROP COLUMN data;
