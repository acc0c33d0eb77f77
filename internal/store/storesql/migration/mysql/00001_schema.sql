-- +goose Up

-- The SQL is understood by MySQL 8 and by MariaDB 10.11 or later.
--
-- Times are milliseconds since 1970 UTC, as in SQLite: time zones and summer
-- time cannot shift them. Values that are compared (buyers, order numbers, keys,
-- ids, states) are bytes, so that Bob, bob and "Bob " are three buyers. Texts for
-- people are utf8mb4. A column without a value yet is NULL.
--
-- The server commits each statement by itself. If a migration is interrupted, the
-- next one runs the file from its start: hence IF NOT EXISTS. Each statement
-- syncs several files, so every table is one statement, with all its indexes.

CREATE TABLE IF NOT EXISTS tb_seckill_product (
    id             INT UNSIGNED     NOT NULL PRIMARY KEY,
    ref            VARBINARY(64)    NOT NULL,
    product_name   VARCHAR(200)     NOT NULL,
    image_url      VARBINARY(500)   NOT NULL,
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
    fallback       VARBINARY(16)    NOT NULL, -- while the ledger is away: wait, store
    seller         TINYINT          NOT NULL, -- of this epoch: 0 ledger, 1 store
    store_open     TINYINT          NOT NULL, -- after a takeover: the store sells
    shard_key      BIGINT           NOT NULL, -- secret that spreads buyers over the shards; 0 with one shard
    state          TINYINT          NOT NULL, -- 0 open, 1 paused, 2 ended
    unlisted       TINYINT          NOT NULL, -- 1: not in the public list
    test           TINYINT          NOT NULL, -- 1: of a rehearsal
    deleting       TINYINT          NOT NULL DEFAULT 0, -- 1: its rows are being deleted, and nobody finds it
    epoch          BIGINT UNSIGNED  NOT NULL, -- 0 until the first preheat
    version        BIGINT           NOT NULL, -- the optimistic lock of stock, epoch and log_seq
    log_seq        BIGINT           NOT NULL, -- the last seq in tb_stock_log
    rebuilding     TINYINT          NOT NULL,
    started_time   BIGINT,                    -- when sale.started was announced
    ended_time     BIGINT,                    -- when sale.ended was announced
    uncounted      TINYINT          NOT NULL DEFAULT 0, -- 1: no report since the end
    create_time    BIGINT           NOT NULL,
    KEY ix_product_group (limit_group),
    KEY ix_product_ended (ended_time, limit_group),
    KEY ix_product_seller (seller, limit_group),
    KEY ix_product_test (test, limit_group),
    KEY ix_product_uncounted (uncounted, ended_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Ids of test products that were deleted: they are used up.
CREATE TABLE IF NOT EXISTS tb_deleted_product (
    id          INT UNSIGNED NOT NULL PRIMARY KEY,
    create_time BIGINT       NOT NULL -- when it was gone
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
    origin        TINYINT         NOT NULL, -- 0 ledger, 2 direct
    release_epoch BIGINT UNSIGNED,          -- NULL: nothing is owed to the ledger
    release_time  BIGINT,                   -- since when it is owed
    -- Also the way to a buyer's orders.
    UNIQUE KEY uk_order_key (user_id, limit_group, idem_key),
    -- Due orders, and those to be warned. New ones come at the end of theirs.
    KEY ix_order_due (status, warned, pay_before),
    KEY ix_order_release (release_time, order_no, product_id),
    -- Searches, each a page in the order of the index.
    KEY ix_order_status (status, order_no),
    KEY ix_order_ref (ref, order_no),
    -- A product's orders, newest first: a page of them reads no more rows than it shows.
    KEY ix_order_product (product_id, order_no),
    -- A product's orders in one state. Covers the figures of a product, so that counting a million orders reads no
    -- order row; the order number is part of every index anyway.
    KEY ix_order_product_status (product_id, status, order_no, epoch, shard, release_epoch, origin, quantity)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Units of a product's orders by status: the sum over the slots. Transactions that
-- do not lock the product take different slots, so as not to wait for each other.
CREATE TABLE IF NOT EXISTS tb_order_units (
    product_id INT UNSIGNED NOT NULL,
    status     TINYINT      NOT NULL,
    slot       TINYINT      NOT NULL,
    units      BIGINT       NOT NULL,
    PRIMARY KEY (product_id, status, slot)
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
    -- Those that wait, by id: of all, of a product, of a buyer.
    KEY ix_letter_open (closed_time, id),
    KEY ix_letter_product (product_id, closed_time, id),
    KEY ix_letter_buyer (user_id, closed_time, id)
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
    -- Lists of each type, newest first.
    KEY ix_payment_type (type, create_time, id),
    KEY ix_payment_product (product_id, type, create_time, id),
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
    data        TEXT,                   -- of an event of a sale or a refund, as JSON
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

-- One row: the name by which a ledger recognises this store. The first instance
-- that asks for it writes it.
CREATE TABLE IF NOT EXISTS tb_store (
    id       TINYINT       NOT NULL PRIMARY KEY,
    identity VARBINARY(64) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The place of each sink in the feed.
CREATE TABLE IF NOT EXISTS tb_sink (
    name        VARBINARY(64) NOT NULL PRIMARY KEY,
    last_event  BIGINT        NOT NULL, -- the cursor
    term        BIGINT        NOT NULL, -- of its sender; a sender of an older term changes nothing
    create_time BIGINT        NOT NULL,
    down_time   BIGINT,                 -- since when its receiver does not answer; NULL if it does
    retry_time  BIGINT                  -- when an operator last asked for a retry
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Deliveries of events to sinks. Settled rows are the delivery log.
CREATE TABLE IF NOT EXISTS tb_sink_delivery (
    sink         VARBINARY(64)  NOT NULL,
    event_id     BIGINT         NOT NULL,
    delivery_key VARBINARY(64)  NOT NULL, -- deliveries of one key are made in their order
    event        VARBINARY(32)  NOT NULL,
    message_id   VARBINARY(64)  NOT NULL,
    event_time   BIGINT         NOT NULL,
    state        TINYINT        NOT NULL, -- 1 retrying, 2 waiting, 3 failed, 4 delivered, 5 skipped
    attempts     INT            NOT NULL,
    last_status  VARCHAR(64)    NOT NULL,
    latency_ms   BIGINT         NOT NULL,
    last_error   VARCHAR(1024)  NOT NULL,
    first_time   BIGINT,
    last_time    BIGINT         NOT NULL,
    next_time    BIGINT,
    body         MEDIUMBLOB,              -- NULL once it is settled
    PRIMARY KEY (sink, event_id),
    -- The states of open deliveries, and deliveries that are due. Covers the figures of a sink.
    KEY ix_delivery_state (sink, state, next_time, event_time),
    KEY ix_delivery_key (sink, delivery_key, state)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The leases of instances, with the products whose ledger does not answer them.
CREATE TABLE IF NOT EXISTS tb_instance (
    name       VARBINARY(128) NOT NULL PRIMARY KEY,
    until_time BIGINT         NOT NULL,
    shop       TINYINT        NOT NULL, -- 1: it has the shop's role
    silent     MEDIUMTEXT     NOT NULL -- product ids with spaces between
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The epoch of a takeover that each instance has acknowledged.
CREATE TABLE IF NOT EXISTS tb_takeover_ack (
    product_id INT UNSIGNED    NOT NULL,
    instance   VARBINARY(128)  NOT NULL,
    epoch      BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (product_id, instance)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
