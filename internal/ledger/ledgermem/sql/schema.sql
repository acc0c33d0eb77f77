-- One row per effect, numbered without gaps above meta.floor. acked is 0 only
-- for outbox entries that no worker has acknowledged.
CREATE TABLE IF NOT EXISTS journal (
  seq   INTEGER PRIMARY KEY,
  kind  INTEGER NOT NULL,
  acked INTEGER NOT NULL,
  body  BLOB    NOT NULL
);

-- Pieces of the state. Each contains all rows up to its seq. Stripe -1 (with epoch 0) is a
-- shard's figures.
CREATE TABLE IF NOT EXISTS snapshot (
  product INTEGER NOT NULL,
  shard   INTEGER NOT NULL,
  epoch   INTEGER NOT NULL,
  stripe  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  body    BLOB    NOT NULL,
  PRIMARY KEY (product, shard, epoch, stripe)
);

-- floor: rows up to it may be deleted. witness: the highest entry that the store has confirmed,
-- as far as known; its row is never deleted.
CREATE TABLE IF NOT EXISTS meta (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  floor       INTEGER NOT NULL,
  witness_seq INTEGER NOT NULL,
  witness_tag INTEGER NOT NULL
);

INSERT OR IGNORE INTO meta (id, floor, witness_seq, witness_tag) VALUES (1, 0, 0, 0);
