SELECT floor, witness_seq, witness_tag FROM meta
