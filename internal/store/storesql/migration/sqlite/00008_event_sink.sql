-- +goose Up

-- What an event of a sale or a refund carries, as JSON; NULL for events of an
-- order, and for events of the version before. It may be NULL, so that the
-- version before can still write.
ALTER TABLE tb_event ADD COLUMN data TEXT;

-- How far each sink has read the feed. The version before never looks here.
CREATE TABLE tb_sink (
    name        TEXT    NOT NULL PRIMARY KEY,
    last_event  INTEGER NOT NULL, -- the cursor
    term        INTEGER NOT NULL, -- of its sender; an older sender can change nothing
    create_time INTEGER NOT NULL,
    down_time   INTEGER,          -- since when its receiver does not answer; NULL if it does
    retry_time  INTEGER           -- when an operator last asked for a retry
) WITHOUT ROWID;

-- What became of events at sinks. Settled rows are the delivery log.
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
-- The states of open deliveries, and what is due. Covers the figures of a sink.
CREATE INDEX ix_delivery_state ON tb_sink_delivery (sink, state, next_time, event_time);
CREATE INDEX ix_delivery_key ON tb_sink_delivery (sink, delivery_key, state) WHERE state < 4;

-- +goose Down
DROP TABLE tb_sink_delivery;
DROP TABLE tb_sink;
ALTER TABLE tb_event DROP COLUMN data;
