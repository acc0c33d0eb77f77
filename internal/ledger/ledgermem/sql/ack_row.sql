UPDATE journal SET acked = 1 WHERE seq = ?
