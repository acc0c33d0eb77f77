-- +goose Up

-- What was used once while Redis could not be asked, until it cannot be used
-- anyway. The version before never looks here.
CREATE TABLE tb_spent (
    id         BLOB    NOT NULL PRIMARY KEY, -- the front of the SHA-256 of what was used
    outcome    INTEGER NOT NULL,
    until_time INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ix_spent_until ON tb_spent (until_time);

-- +goose Down
DROP TABLE tb_spent;
