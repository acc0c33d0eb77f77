#!lua flags=no-writes
-- now.lua returns a node's clock, as seconds and microseconds.
--
-- KEYS[1] any key of the node

return redis.call('TIME')
