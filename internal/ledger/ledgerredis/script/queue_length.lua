#!lua flags=no-writes
-- Reads the length of one bucket's stream.
--
-- KEYS 1 {bN}:out
return redis.call('XLEN', KEYS[1])
