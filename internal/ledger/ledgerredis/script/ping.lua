#!lua
-- ping.lua writes nothing, but may write: a server that would refuse a write
-- (full, read-only, failing to persist, short of replicas) refuses this.
--
-- KEYS[1] any key

return redis.call('EXISTS', KEYS[1])
