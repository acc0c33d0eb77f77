#!lua
-- ping.lua writes nothing, but is declared as a write. So a server that would refuse a write
-- (full, read-only, failing to persist, short of replicas) refuses this script.
--
-- KEYS[1] any key

return redis.call('EXISTS', KEYS[1])
