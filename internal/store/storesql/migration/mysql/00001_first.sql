-- +goose Up

-- For MySQL 8 and MariaDB 10.11 or later, in what both understand.
--
-- Times are milliseconds since 1970 UTC, as in SQLite: no session's time zone
-- and no summer time can shift them. What is compared (buyers, order numbers,
-- keys, ids, states) is bytes, so that Bob, bob and "Bob " are three; what
-- people read is utf8mb4. A column that names nothing yet is NULL.
--
-- These databases commit each of the statements below by itself. A migration
-- that was broken off is run again from its start: hence IF NOT EXISTS.

CREATE TABLE IF NOT EXISTS tb_seckill_product (
    id             INT UNSIGNED     NOT NULL PRIMARY KEY,
    ref            VARBINARY(64)    NOT NULL,
    product_name   VARCHAR(200)     NOT NULL,
    price_cents    BIGINT           NOT NULL,
    currency       VARBINARY(16)    NOT NULL,
    stock          BIGINT           NOT NULL CHECK (stock >= 0), -- still unsold
    offered        BIGINT           NOT NULL CHECK (offered >= 0),
    per_user_limit INT              NOT NULL,
    limit_group    INT UNSIGNED     NOT NULL,
    starts_at      BIGINT           NOT NULL,
    ends_at        BIGINT           NOT NULL,
    shards         INT              NOT NULL,
    strategy       VARBINARY(16)    NOT NULL,
    fallback_share DOUBLE           NOT NULL,
    state          TINYINT          NOT NULL, -- 0 open, 1 paused, 2 ended
    epoch          BIGINT UNSIGNED  NOT NULL, -- 0 until the first preheat
    version        BIGINT           NOT NULL, -- the optimistic lock of stock, epoch and log_seq
    log_seq        BIGINT           NOT NULL, -- the last seq in tb_stock_log
    rebuilding     TINYINT          NOT NULL,
    started_time   BIGINT,                    -- when sale.started was announced
    ended_time     BIGINT,                    -- when sale.ended was announced
    create_time    BIGINT           NOT NULL,
    KEY ix_product_group (limit_group)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Order numbers grow with time, so that the table grows at its end; they serve
-- as its key, and spare it the tree that another id would need.
CREATE TABLE IF NOT EXISTS tb_seckill_order (
    order_no      VARBINARY(32)   NOT NULL PRIMARY KEY,
    user_id       VARBINARY(64)   NOT NULL,
    product_id    INT UNSIGNED    NOT NULL,
    limit_group   INT UNSIGNED    NOT NULL,
    product_name  VARCHAR(200)    NOT NULL,
    price_cents   BIGINT          NOT NULL, -- of one unit
    currency      VARBINARY(16)   NOT NULL,
    quantity      INT             NOT NULL CHECK (quantity > 0),
    ref           VARBINARY(128)  NOT NULL,
    idem_key      VARBINARY(64),            -- NULL: asked without a key, or the key is another order's
    status        TINYINT         NOT NULL, -- 0 pending, 1 paid, 2 cancelled, 3 failed, 4 refunded
    reason        TEXT            NOT NULL,
    create_time   BIGINT          NOT NULL,
    pay_before    BIGINT,
    pay_time      BIGINT,
    cancel_time   BIGINT,                   -- cancelled, failed or refunded
    warned        TINYINT         NOT NULL DEFAULT 0, -- order.expiring was written
    epoch         BIGINT UNSIGNED NOT NULL, -- of the order when it died; a live one is of its product's epoch
    shard         INT             NOT NULL,
    release_epoch BIGINT UNSIGNED,          -- NULL: nothing is owed to the ledger
    release_time  BIGINT,                   -- since when it is owed
    -- Also the way to a buyer's orders.
    UNIQUE KEY uk_order_key (user_id, limit_group, idem_key),
    -- Due orders, and those to be warned. New ones come at the end of theirs.
    KEY ix_order_due (status, warned, pay_before),
    KEY ix_order_release (release_time, product_id),
    -- Covers the figures of a product, so that counting a million orders reads no order row.
    KEY ix_order_figures (product_id, status, epoch, shard, release_epoch, quantity)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_stock_log (
    product_id   INT UNSIGNED  NOT NULL,
    seq          BIGINT        NOT NULL, -- 1, 2, 3 … per product, without a gap
    order_no     VARBINARY(32),          -- NULL for an operator's change
    quantity     BIGINT        NOT NULL, -- units; signed for an operator's change
    before_stock BIGINT        NOT NULL,
    after_stock  BIGINT        NOT NULL,
    type         TINYINT       NOT NULL, -- 1 sold, 2 returned, 3 operator
    create_time  BIGINT        NOT NULL,
    PRIMARY KEY (product_id, seq),
    KEY ix_stock_log_order (order_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Its key is unique as uk_user_product; MySQL calls every primary key PRIMARY.
CREATE TABLE IF NOT EXISTS tb_user_seckill (
    product_id INT UNSIGNED  NOT NULL, -- the limit group
    user_id    VARBINARY(64) NOT NULL,
    order_no   VARBINARY(32) NOT NULL, -- the buyer's newest live order in the group
    quantity   BIGINT        NOT NULL, -- live units; the row goes at 0
    CONSTRAINT uk_user_product PRIMARY KEY (product_id, user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_dead_letter (
    id             BIGINT          NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_no       VARBINARY(32)   NOT NULL,
    user_id        VARBINARY(64)   NOT NULL,
    product_id     INT UNSIGNED    NOT NULL,
    limit_group    INT UNSIGNED    NOT NULL,
    shard          INT             NOT NULL,
    epoch          BIGINT UNSIGNED NOT NULL,
    claim_time     BIGINT          NOT NULL,
    quantity       INT             NOT NULL,
    idem_key       VARBINARY(64)   NOT NULL,
    ref            VARBINARY(128)  NOT NULL,
    product_name   VARCHAR(200)    NOT NULL,
    price_cents    BIGINT          NOT NULL,
    currency       VARBINARY(16)   NOT NULL,
    per_user_limit INT             NOT NULL,
    attempts       INT             NOT NULL,
    reason         TEXT            NOT NULL,
    next_time      BIGINT          NOT NULL,
    create_time    BIGINT          NOT NULL,
    dead_time      BIGINT, -- NULL while parked
    closed_time    BIGINT, -- NULL while the claim waits; kept for the order's story
    UNIQUE KEY uk_letter_order (order_no),
    -- Parked ones that are due, and dead ones by age.
    KEY ix_letter_due (closed_time, dead_time, next_time),
    KEY ix_letter_product (product_id, closed_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_payment (
    id           VARBINARY(64)  NOT NULL PRIMARY KEY,
    type         VARBINARY(16)  NOT NULL, -- payment, refund
    order_no     VARBINARY(255) NOT NULL, -- as the provider said it
    product_id   INT UNSIGNED   NOT NULL, -- 0 when the number names no product
    provider     VARBINARY(64)  NOT NULL,
    trade_no     VARBINARY(255) NOT NULL,
    amount_cents BIGINT         NOT NULL,
    currency     VARBINARY(16)  NOT NULL,
    status       VARBINARY(16)  NOT NULL, -- payment: applied, excess; refund: due, done, failed
    reason       TEXT           NOT NULL,
    payment_id   VARBINARY(64),           -- of a refund: the payment that it returns
    attempts     INT            NOT NULL,
    last_error   TEXT           NOT NULL, -- of a refund: why the last attempt failed
    next_time    BIGINT,                  -- of a refund that is due
    trade_time   BIGINT,                  -- of a payment: when the provider took it
    create_time  BIGINT         NOT NULL,
    done_time    BIGINT,
    -- A callback delivered N times counts once; money goes back once.
    UNIQUE KEY uk_payment_trade (provider, trade_no, type),
    UNIQUE KEY uk_payment_refund (payment_id),
    KEY ix_payment_order (order_no),
    KEY ix_payment_product (product_id),
    KEY ix_payment_due (status, next_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_stock_change (
    id          VARBINARY(255)  NOT NULL PRIMARY KEY,
    product_id  INT UNSIGNED    NOT NULL,
    delta       BIGINT          NOT NULL,
    epoch       BIGINT UNSIGNED NOT NULL,
    status      VARBINARY(16)   NOT NULL, -- open, done, refused
    actor       VARCHAR(255)    NOT NULL,
    reason      TEXT            NOT NULL,
    create_time BIGINT          NOT NULL,
    done_time   BIGINT,
    KEY ix_stock_change_open (status, create_time),
    KEY ix_stock_change_product (product_id, status)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_reconciliation (
    id          BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    product_id  INT UNSIGNED NOT NULL,
    create_time BIGINT       NOT NULL,
    balanced    TINYINT, -- NULL: could not tell
    body        LONGBLOB     NOT NULL,
    KEY ix_reconciliation_product (product_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_audit (
    id          BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    create_time BIGINT        NOT NULL,
    actor       VARCHAR(255)  NOT NULL,
    action      VARBINARY(64) NOT NULL,
    product_id  INT UNSIGNED  NOT NULL,
    order_no    VARBINARY(255) NOT NULL,
    reason      TEXT          NOT NULL,
    detail      TEXT          NOT NULL,
    KEY ix_audit_product (product_id),
    KEY ix_audit_order (order_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The events of one transaction are a batch. Its number is given when the feed
-- is first read after the commit, so that numbers become visible in order.
CREATE TABLE IF NOT EXISTS tb_event_batch (
    id      BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    events  INT    NOT NULL,
    last_id BIGINT, -- id of its last event; NULL until it is numbered
    UNIQUE KEY uk_event_batch_last (last_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Buyer, quantity, amount and ref of an order never change, so that an event
-- reads them from its order and keeps only what is its own.
CREATE TABLE IF NOT EXISTS tb_event (
    batch_id    BIGINT        NOT NULL,
    place       INT           NOT NULL, -- in the batch, from 0
    create_time BIGINT        NOT NULL,
    event       VARBINARY(32) NOT NULL,
    product_id  INT UNSIGNED  NOT NULL,
    order_no    VARBINARY(32),          -- NULL for an event of a sale
    reason      TEXT          NOT NULL,
    PRIMARY KEY (batch_id, place),
    KEY ix_event_order (order_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- One row: the highest number given so far. Readers lock it, writers never do.
CREATE TABLE IF NOT EXISTS tb_feed (
    id      TINYINT NOT NULL PRIMARY KEY,
    last_id BIGINT  NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
INSERT IGNORE INTO tb_feed (id, last_id) VALUES (1, 0);

CREATE TABLE IF NOT EXISTS tb_witness (
    stream VARBINARY(255)  NOT NULL PRIMARY KEY,
    seq    BIGINT UNSIGNED NOT NULL,
    tag    BIGINT          NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tb_lease (
    name       VARBINARY(255) NOT NULL PRIMARY KEY,
    holder     VARBINARY(255) NOT NULL,
    until_time BIGINT         NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE tb_lease;
DROP TABLE tb_witness;
DROP TABLE tb_feed;
DROP TABLE tb_event;
DROP TABLE tb_event_batch;
DROP TABLE tb_audit;
DROP TABLE tb_reconciliation;
DROP TABLE tb_stock_change;
DROP TABLE tb_payment;
DROP TABLE tb_dead_letter;
DROP TABLE tb_user_seckill;
DROP TABLE tb_stock_log;
DROP TABLE tb_seckill_order;
DROP TABLE tb_seckill_product;
