#!lua flags=no-writes
-- Lists the fields of one bucket's queue hash, among them a sum per product
-- that has something waiting.
--
-- KEYS 1 {bN}:queue
return redis.call('HKEYS', KEYS[1])
