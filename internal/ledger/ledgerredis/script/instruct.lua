#!lua
-- instruct.lua, after instruction.lua: keeps an instruction, unless one that is as
-- strong is kept, and has the state of the sale follow it. The shard may be of any
-- epoch. One that was never installed gets its state by the install. Returns the
-- instruction that is kept now.
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
