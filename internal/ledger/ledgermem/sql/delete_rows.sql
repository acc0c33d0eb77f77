DELETE FROM journal WHERE seq > ? AND seq <= ? AND acked = 1 AND seq <> (SELECT witness_seq FROM meta)
