#!lua flags=no-writes
-- now.lua is the clock of a node, as seconds and microseconds.
--
-- KEYS[1] any key of the node that is asked

return redis.call('TIME')
