UPDATE meta SET witness_seq = ?, witness_tag = ?
