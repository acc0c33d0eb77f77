-- +goose Up

-- Times are milliseconds since 1970 UTC. Buyers are BLOBs, so that Bob and bob
-- are two buyers. A column without a value yet is NULL.

CREATE TABLE tb_seckill_product (
    id             INTEGER PRIMARY KEY,
    ref            TEXT    NOT NULL,
    product_name   TEXT    NOT NULL,
    image_url      TEXT    NOT NULL,
    price_cents    INTEGER NOT NULL,
    currency       TEXT    NOT NULL,
    stock          INTEGER NOT NULL CHECK (stock >= 0), -- still unsold
    offered        INTEGER NOT NULL CHECK (offered >= 0),
    per_user_limit INTEGER NOT NULL,
    limit_group    INTEGER NOT NULL,
    starts_at      INTEGER NOT NULL,
    ends_at        INTEGER NOT NULL,
    shards         INTEGER NOT NULL,
    strategy       TEXT    NOT NULL,
    fallback       TEXT    NOT NULL, -- while the ledger is away: wait, store
    seller         INTEGER NOT NULL, -- of this epoch: 0 ledger, 1 store
    store_open     INTEGER NOT NULL, -- after a takeover: the store sells
    shard_key      INTEGER NOT NULL, -- secret that spreads buyers over the shards; 0 with one shard
    state          INTEGER NOT NULL, -- 0 open, 1 paused, 2 ended
    unlisted       INTEGER NOT NULL, -- 1: not in the public list
    test           INTEGER NOT NULL, -- 1: of a rehearsal
    deleting       INTEGER NOT NULL DEFAULT 0, -- 1: its rows are being deleted, and nobody finds it
    epoch          INTEGER NOT NULL, -- 0 until the first preheat
    version        INTEGER NOT NULL, -- the optimistic lock of stock, epoch and log_seq
    log_seq        INTEGER NOT NULL, -- the last seq in tb_stock_log
    rebuilding     INTEGER NOT NULL,
    started_time   INTEGER,          -- when sale.started was announced
    ended_time     INTEGER,          -- when sale.ended was announced
    uncounted      INTEGER NOT NULL DEFAULT 0, -- 1: no report since the end
    create_time    INTEGER NOT NULL
);
CREATE INDEX ix_product_group ON tb_seckill_product (limit_group);
CREATE INDEX ix_product_ended ON tb_seckill_product (ended_time, limit_group);
CREATE INDEX ix_product_seller ON tb_seckill_product (seller, limit_group);
CREATE INDEX ix_product_test ON tb_seckill_product (test, limit_group);
CREATE INDEX ix_product_uncounted ON tb_seckill_product (uncounted, ended_time);

-- Ids of test products that were deleted: they are used up.
CREATE TABLE tb_deleted_product (
    id          INTEGER PRIMARY KEY,
    create_time INTEGER NOT NULL -- when it was gone
);

CREATE TABLE tb_seckill_order (
    id            INTEGER PRIMARY KEY,
    order_no      TEXT    NOT NULL,
    user_id       BLOB    NOT NULL,
    product_id    INTEGER NOT NULL,
    limit_group   INTEGER NOT NULL,
    product_name  TEXT    NOT NULL,
    price_cents   INTEGER NOT NULL, -- of one unit
    currency      TEXT    NOT NULL,
    quantity      INTEGER NOT NULL CHECK (quantity > 0),
    ref           TEXT    NOT NULL,
    idem_key      TEXT,             -- NULL: asked without a key, or the key is another order's
    status        INTEGER NOT NULL, -- 0 pending, 1 paid, 2 cancelled, 3 failed, 4 refunded
    reason        TEXT    NOT NULL,
    create_time   INTEGER NOT NULL,
    pay_before    INTEGER,
    pay_time      INTEGER,
    cancel_time   INTEGER,          -- cancelled, failed or refunded
    warned        INTEGER NOT NULL DEFAULT 0, -- order.expiring was written
    epoch         INTEGER NOT NULL, -- of the order when it died; a live one is of its product's epoch
    shard         INTEGER NOT NULL,
    origin        INTEGER NOT NULL, -- 0 ledger, 2 direct
    release_epoch INTEGER,          -- NULL: nothing is owed to the ledger
    release_time  INTEGER           -- since when it is owed
);
CREATE UNIQUE INDEX uk_order_no ON tb_seckill_order (order_no);
-- Also the way to a buyer's orders.
CREATE UNIQUE INDEX uk_order_key ON tb_seckill_order (user_id, limit_group, idem_key);
-- Due orders, and those to be warned.
CREATE INDEX ix_order_due ON tb_seckill_order (warned, pay_before) WHERE status = 0;
CREATE INDEX ix_order_release ON tb_seckill_order (release_time) WHERE release_epoch IS NOT NULL;
-- A product's orders, newest first: a page of them reads no more rows than it shows.
CREATE INDEX ix_order_product ON tb_seckill_order (product_id, order_no);
-- Searches, each a page in the order of the index.
CREATE INDEX ix_order_status ON tb_seckill_order (status, order_no);
-- It also covers the figures of a product, so that counting a million orders reads no order row.
CREATE INDEX ix_order_product_status ON tb_seckill_order (product_id, status, order_no, epoch, shard, release_epoch, origin, quantity);
CREATE INDEX ix_order_ref ON tb_seckill_order (ref, order_no) WHERE ref <> '';

-- Units of a product's orders by status: the sum over the slots. With one writer
-- there is one slot.
CREATE TABLE tb_order_units (
    product_id INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    slot       INTEGER NOT NULL,
    units      INTEGER NOT NULL,
    PRIMARY KEY (product_id, status, slot)
) WITHOUT ROWID;

CREATE TABLE tb_stock_log (
    product_id   INTEGER NOT NULL,
    seq          INTEGER NOT NULL, -- 1, 2, 3 … per product, without a gap
    order_no     TEXT,             -- NULL for an operator's change
    quantity     INTEGER NOT NULL, -- units; signed for an operator's change
    before_stock INTEGER NOT NULL,
    after_stock  INTEGER NOT NULL,
    type         INTEGER NOT NULL, -- 1 sold, 2 returned, 3 operator
    create_time  INTEGER NOT NULL,
    PRIMARY KEY (product_id, seq)
) WITHOUT ROWID;
CREATE INDEX ix_stock_log_order ON tb_stock_log (order_no);

CREATE TABLE tb_user_seckill (
    product_id INTEGER NOT NULL, -- the limit group
    user_id    BLOB    NOT NULL,
    order_no   TEXT    NOT NULL, -- the buyer's newest live order in the group
    quantity   INTEGER NOT NULL, -- live units; the row goes at 0
    CONSTRAINT uk_user_product PRIMARY KEY (product_id, user_id)
) WITHOUT ROWID;

CREATE TABLE tb_dead_letter (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    order_no       TEXT    NOT NULL,
    user_id        BLOB    NOT NULL,
    product_id     INTEGER NOT NULL,
    limit_group    INTEGER NOT NULL,
    shard          INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    claim_time     INTEGER NOT NULL,
    quantity       INTEGER NOT NULL,
    idem_key       TEXT    NOT NULL,
    ref            TEXT    NOT NULL,
    product_name   TEXT    NOT NULL,
    price_cents    INTEGER NOT NULL,
    currency       TEXT    NOT NULL,
    per_user_limit INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    reason         TEXT    NOT NULL,
    next_time      INTEGER NOT NULL,
    create_time    INTEGER NOT NULL,
    dead_time      INTEGER, -- NULL while parked
    closed_time    INTEGER  -- NULL while the claim waits; kept for the order's story
);
CREATE UNIQUE INDEX uk_letter_order ON tb_dead_letter (order_no);
CREATE INDEX ix_letter_due ON tb_dead_letter (next_time) WHERE closed_time IS NULL AND dead_time IS NULL;
CREATE INDEX ix_letter_dead ON tb_dead_letter (dead_time) WHERE closed_time IS NULL AND dead_time IS NOT NULL;
-- Those that wait, by id: of all, of a product, of a buyer.
CREATE INDEX ix_letter_open ON tb_dead_letter (id) WHERE closed_time IS NULL;
CREATE INDEX ix_letter_product ON tb_dead_letter (product_id, id) WHERE closed_time IS NULL;
CREATE INDEX ix_letter_buyer ON tb_dead_letter (user_id, id) WHERE closed_time IS NULL;

CREATE TABLE tb_payment (
    id           TEXT    NOT NULL PRIMARY KEY,
    type         TEXT    NOT NULL, -- payment, refund
    order_no     TEXT    NOT NULL, -- as the provider said it
    product_id   INTEGER NOT NULL, -- 0 when the number names no product
    provider     TEXT    NOT NULL,
    trade_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL,
    currency     TEXT    NOT NULL,
    status       TEXT    NOT NULL, -- payment: applied, excess; refund: due, done, failed
    reason       TEXT    NOT NULL,
    payment_id   TEXT,             -- of a refund: the payment that it returns
    attempts     INTEGER NOT NULL,
    last_error   TEXT    NOT NULL, -- of a refund: why the last attempt failed
    next_time    INTEGER,          -- of a refund that is due
    trade_time   INTEGER,          -- of a payment: when the provider took it
    create_time  INTEGER NOT NULL,
    done_time    INTEGER
);
-- A callback delivered N times counts once; money goes back once.
CREATE UNIQUE INDEX uk_payment_trade ON tb_payment (provider, trade_no, type);
CREATE UNIQUE INDEX uk_payment_refund ON tb_payment (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX ix_payment_order ON tb_payment (order_no);
-- Lists of each type, newest first.
CREATE INDEX ix_payment_type ON tb_payment (type, create_time, id);
CREATE INDEX ix_payment_product ON tb_payment (product_id, type, create_time, id);
CREATE INDEX ix_payment_due ON tb_payment (next_time) WHERE status = 'due';

CREATE TABLE tb_stock_change (
    id          TEXT    NOT NULL PRIMARY KEY,
    product_id  INTEGER NOT NULL,
    delta       INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    status      TEXT    NOT NULL, -- open, done, refused
    actor       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    create_time INTEGER NOT NULL,
    done_time   INTEGER
);
CREATE INDEX ix_stock_change_product ON tb_stock_change (product_id, status);
CREATE INDEX ix_stock_change_open ON tb_stock_change (create_time) WHERE status = 'open';

CREATE TABLE tb_reconciliation (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    product_id  INTEGER NOT NULL,
    create_time INTEGER NOT NULL,
    balanced    INTEGER, -- NULL: could not tell
    body        BLOB    NOT NULL
);
CREATE INDEX ix_reconciliation_product ON tb_reconciliation (product_id);

CREATE TABLE tb_audit (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    create_time INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    product_id  INTEGER NOT NULL,
    order_no    TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    detail      TEXT    NOT NULL
);
CREATE INDEX ix_audit_product ON tb_audit (product_id);
CREATE INDEX ix_audit_order ON tb_audit (order_no) WHERE order_no <> '';

-- Buyer, quantity, amount and ref of an order never change, so that an event
-- reads them from its order and keeps only what is its own.
CREATE TABLE tb_event (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    create_time INTEGER NOT NULL,
    event       TEXT    NOT NULL,
    product_id  INTEGER NOT NULL,
    order_no    TEXT,             -- NULL for an event of a sale
    reason      TEXT    NOT NULL,
    data        TEXT              -- of an event of a sale or a refund, as JSON
);
-- Events of sales, which are few, stand under NULL.
CREATE INDEX ix_event_order ON tb_event (order_no);

CREATE TABLE tb_witness (
    stream TEXT    NOT NULL PRIMARY KEY,
    seq    INTEGER NOT NULL,
    tag    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE tb_lease (
    name       TEXT    NOT NULL PRIMARY KEY,
    holder     TEXT    NOT NULL,
    until_time INTEGER NOT NULL
) WITHOUT ROWID;

-- One row: the name by which a ledger recognises this store. The first instance
-- that asks for it writes it.
CREATE TABLE tb_store (
    id       INTEGER NOT NULL PRIMARY KEY,
    identity TEXT    NOT NULL
);

-- The place of each sink in the feed.
CREATE TABLE tb_sink (
    name        TEXT    NOT NULL PRIMARY KEY,
    last_event  INTEGER NOT NULL, -- the cursor
    term        INTEGER NOT NULL, -- of its sender; a sender of an older term changes nothing
    create_time INTEGER NOT NULL,
    down_time   INTEGER,          -- since when its receiver does not answer; NULL if it does
    retry_time  INTEGER           -- when an operator last asked for a retry
) WITHOUT ROWID;

-- Deliveries of events to sinks. Settled rows are the delivery log.
CREATE TABLE tb_sink_delivery (
    sink         TEXT    NOT NULL,
    event_id     INTEGER NOT NULL,
    delivery_key TEXT    NOT NULL, -- deliveries of one key are made in their order
    event        TEXT    NOT NULL,
    message_id   TEXT    NOT NULL,
    event_time   INTEGER NOT NULL,
    state        INTEGER NOT NULL, -- 1 retrying, 2 waiting, 3 failed, 4 delivered, 5 skipped
    attempts     INTEGER NOT NULL,
    last_status  TEXT    NOT NULL,
    latency_ms   INTEGER NOT NULL,
    last_error   TEXT    NOT NULL,
    first_time   INTEGER,
    last_time    INTEGER NOT NULL,
    next_time    INTEGER,
    body         BLOB,             -- NULL once it is settled
    PRIMARY KEY (sink, event_id)
) WITHOUT ROWID;
-- The states of open deliveries, and deliveries that are due. Covers the figures of a sink.
CREATE INDEX ix_delivery_state ON tb_sink_delivery (sink, state, next_time, event_time);
CREATE INDEX ix_delivery_key ON tb_sink_delivery (sink, delivery_key, state) WHERE state < 4;

-- The leases of instances, with the products whose ledger does not answer them.
CREATE TABLE tb_instance (
    name       TEXT    NOT NULL PRIMARY KEY,
    until_time INTEGER NOT NULL,
    shop       INTEGER NOT NULL, -- 1: it has the shop's role
    silent     TEXT    NOT NULL -- product ids with spaces between
) WITHOUT ROWID;

-- The epoch of a takeover that each instance has acknowledged.
CREATE TABLE tb_takeover_ack (
    product_id INTEGER NOT NULL,
    instance   TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    PRIMARY KEY (product_id, instance)
) WITHOUT ROWID;
