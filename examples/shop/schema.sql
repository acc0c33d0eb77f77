-- The shop's own database. Times are Unix milliseconds.

CREATE TABLE IF NOT EXISTS user (
    id       TEXT PRIMARY KEY,          -- the engine knows the buyer by this id (JWT "sub")
    name     TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,             -- a hash, see user.go
    created  INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS session (
    token_hash BLOB PRIMARY KEY,        -- SHA-256 of the cookie: a leaked database signs nobody in
    user_id    TEXT NOT NULL REFERENCES user (id),
    expires    INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS item (
    sku         TEXT PRIMARY KEY,
    name_en     TEXT NOT NULL,
    name_zh     TEXT NOT NULL,
    price_cents INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS sale (
    product_id     INTEGER PRIMARY KEY, -- the engine's number of this sale
    sku            TEXT NOT NULL REFERENCES item (sku),
    price_cents    INTEGER NOT NULL,
    stock          INTEGER NOT NULL,
    per_user_limit INTEGER NOT NULL,
    starts_at      INTEGER NOT NULL,
    ends_at        INTEGER NOT NULL,
    state          TEXT NOT NULL,       -- planned until the engine has it, then the last sale.* event
    state_at       INTEGER NOT NULL,
    returned_units INTEGER              -- of sale.ended: unsold units that are the shop's again
) STRICT;

CREATE INDEX IF NOT EXISTS sale_by_sku ON sale (sku, starts_at);

-- Only events of the engine write here.
CREATE TABLE IF NOT EXISTS shop_order (
    order_no     TEXT PRIMARY KEY,
    sku          TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    quantity     INTEGER NOT NULL,
    amount_cents INTEGER NOT NULL,
    status       TEXT NOT NULL,
    updated      INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS order_by_user ON shop_order (user_id, order_no);

-- The cashier's outbox: money that was taken, and whether the engine knows.
CREATE TABLE IF NOT EXISTS payment (
    order_no     TEXT PRIMARY KEY,
    trade_no     TEXT NOT NULL,
    amount_cents INTEGER NOT NULL,
    state        TEXT NOT NULL,         -- due, done or refused
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS payment_due ON payment (next_at) WHERE state = 'due';

CREATE TABLE IF NOT EXISTS refund (
    order_no TEXT NOT NULL,
    id       TEXT NOT NULL,
    state    TEXT NOT NULL,             -- required or settled
    updated  INTEGER NOT NULL,
    PRIMARY KEY (order_no, id)
) STRICT;

-- Webhooks that were applied, so that a repeated one changes nothing.
CREATE TABLE IF NOT EXISTS webhook (
    id       TEXT PRIMARY KEY,
    received INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS webhook_by_age ON webhook (received);

INSERT INTO item (sku, name_en, name_zh, price_cents) VALUES
    ('AURORA-X1-128', 'Aurora X1 phone', '极光 X1 手机', 699900),
    ('POCKET-BUDS', 'Pocket headphones', '口袋耳机', 9900),
    ('TEA-LONGJING-250', 'Longjing tea, 250 g', '龙井茶 250 克', 26800)
ON CONFLICT (sku) DO NOTHING;
