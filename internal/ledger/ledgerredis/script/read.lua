#!lua flags=no-writes
-- read.lua reads all of a shard's figures.
--
-- KEYS[1] shard   hash: the shard's figures

return redis.call('HGETALL', KEYS[1])
