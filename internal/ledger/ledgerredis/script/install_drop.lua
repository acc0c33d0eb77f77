#!lua
-- install_drop.lua forgets a staging, so that its marks count as waste.
--
-- KEYS[1] group   hash: see install_begin.lua
-- ARGV[1] product
-- ARGV[2] generation (4 bytes)
-- ARGV[3] token

local there = redis.call('HGET', KEYS[1], 'stage:' .. ARGV[1])
if there and string.sub(there, 1, 4) == ARGV[2] and string.sub(there, 13) == ARGV[3] then
  redis.call('HDEL', KEYS[1], 'stage:' .. ARGV[1])
end
return 1
