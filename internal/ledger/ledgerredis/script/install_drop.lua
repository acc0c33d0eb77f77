#!lua
-- install_drop.lua removes a staging, so that its marks become garbage.
--
-- KEYS[1] group   hash: see install_begin.lua
-- ARGV[1] field   of the staging in the group

redis.call('HDEL', KEYS[1], ARGV[1])
return 1
