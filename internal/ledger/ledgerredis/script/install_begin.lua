#!lua
-- install_begin.lua begins an install over a lower epoch: it takes the next
-- generation of the group, under which marks are then staged. An install of
-- the same product that is under way is superseded.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] group   hash: product -> live generation; "next"; "stage:PRODUCT" ->
--                 generation (4 bytes), marks staged (8), token
-- ARGV[1] product
-- ARGV[2] epoch
-- ARGV[3] token   random: tells this install from another that is given the
--                 same generation after a loss
--
-- Returns the generation (4 bytes), or the epoch that stands in the way.

local there = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0')
if there >= tonumber(ARGV[2]) then
  return there
end
local generation = struct.pack('>I4', redis.call('HINCRBY', KEYS[2], 'next', 1))
redis.call('HSET', KEYS[2], 'stage:' .. ARGV[1], generation .. struct.pack('>I8', 0) .. ARGV[3])
return generation
