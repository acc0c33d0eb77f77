SELECT seq, body FROM journal WHERE seq BETWEEN ? AND ? AND acked = 0 ORDER BY seq
