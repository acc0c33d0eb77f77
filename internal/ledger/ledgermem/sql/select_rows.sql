SELECT seq, kind, acked, body FROM journal ORDER BY seq
