-- +goose Up

-- One row: the name by which a ledger knows that it is this store's. It is made
-- by the first program that asks; the version before never looks here.
CREATE TABLE IF NOT EXISTS tb_store (
    id       TINYINT       NOT NULL PRIMARY KEY,
    identity VARBINARY(64) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE tb_store;
