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

-- How far each sink has read the feed. The version before never looks here.
CREATE TABLE IF NOT EXISTS tb_sink (
    name        VARBINARY(64) NOT NULL PRIMARY KEY,
    last_event  BIGINT        NOT NULL, -- the cursor
    term        BIGINT        NOT NULL, -- of its sender; an older sender can change nothing
    create_time BIGINT        NOT NULL,
    down_time   BIGINT,                 -- since when its receiver does not answer; NULL if it does
    retry_time  BIGINT                  -- when an operator last asked for a retry
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What became of events at sinks. Settled rows are the delivery log.
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
    -- The states of open deliveries, and what is due. Covers the figures of a sink.
    KEY ix_delivery_state (sink, state, next_time, event_time),
    KEY ix_delivery_key (sink, delivery_key, state)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE tb_sink_delivery;
DROP TABLE tb_sink;
ALTER TABLE tb_event DROP COLUMN data;
