#!lua flags=no-writes
-- now.lua is the server's clock, of one and the same node of a Cluster, as
-- seconds and microseconds.
--
-- KEYS[1] any key of the first bucket

return redis.call('TIME')
