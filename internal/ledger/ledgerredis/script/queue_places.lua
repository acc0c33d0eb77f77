#!lua flags=no-writes
-- Lists the fields of one bucket's queue hash. Among them is a sum per product with waiting
-- entries.
--
-- KEYS 1 {bN}:queue
return redis.call('HKEYS', KEYS[1])
