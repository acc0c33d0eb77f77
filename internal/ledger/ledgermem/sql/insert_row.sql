INSERT INTO journal (seq, kind, acked, body) VALUES (?, ?, ?, ?)
