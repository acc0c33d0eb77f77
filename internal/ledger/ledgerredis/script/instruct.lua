#!lua
-- instruct.lua, after instruction.lua: stores an instruction, unless the shard keeps one that
-- is at least as strong, and applies its state. The shard may have any epoch. If it was never
-- installed, the install applies the state. Returns the instruction that the shard keeps now.
--
-- KEYS[1] shard   hash: the shard's figures
-- ARGV[1] instruction

local there = redis.call('HMGET', KEYS[1], 'instruction', 'epoch', 'state')
local kept, new = least(there[1]), least(ARGV[1])
local stays = there[1]
if new > kept then
  stays = ARGV[1]
  redis.call('HSET', KEYS[1], 'instruction', stays)
end
if there[2] then
  redis.call('HSET', KEYS[1], 'state', math.max(tonumber(there[3] or '') or 0, kept, new))
end
return stays
