-- +goose Up

-- What was used once while Redis could not be asked, until it cannot be used
-- anyway. The version before never looks here.
CREATE TABLE IF NOT EXISTS tb_spent (
    id         BINARY(16)       NOT NULL PRIMARY KEY, -- the front of the SHA-256 of what was used
    outcome    TINYINT UNSIGNED NOT NULL,
    until_time BIGINT           NOT NULL,
    KEY ix_spent_until (until_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE tb_spent;
