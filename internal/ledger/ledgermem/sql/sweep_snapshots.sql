DELETE FROM snapshot WHERE rowid IN (
  SELECT rowid FROM snapshot WHERE product = ? AND shard = ? AND stripe >= 0 AND epoch BETWEEN ? AND ? LIMIT ?)
