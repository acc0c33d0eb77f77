SELECT kind, body FROM journal WHERE seq = ?
