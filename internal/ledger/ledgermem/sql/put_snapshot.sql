INSERT OR REPLACE INTO snapshot (product, shard, epoch, stripe, seq, body) VALUES (?, ?, ?, ?, ?, ?)
