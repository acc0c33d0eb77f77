SELECT max(coalesce((SELECT max(seq) FROM journal), 0), floor) FROM meta
