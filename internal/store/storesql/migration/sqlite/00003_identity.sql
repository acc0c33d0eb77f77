-- +goose Up

-- One row: the name by which a ledger knows that it is this store's. It is made
-- by the first program that asks; the version before never looks here.
CREATE TABLE tb_store (
    id       INTEGER NOT NULL PRIMARY KEY,
    identity TEXT    NOT NULL
);

-- +goose Down
DROP TABLE tb_store;
