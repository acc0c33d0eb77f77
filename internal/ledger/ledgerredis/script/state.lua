#!lua
-- state.lua, after instruction.lua: sets the state of the sale on a shard that has exactly this
-- epoch, unless the shard has got a later version. It does not set a state below that of an
-- instruction. Returns 1 if the shard has this epoch.
--
-- KEYS[1] shard   hash: the shard's figures
-- ARGV[1] epoch
-- ARGV[2] state
-- ARGV[3] version of the product in the store when it had this state

local there = redis.call('HMGET', KEYS[1], 'epoch', 'stated', 'instruction')
if there[1] ~= ARGV[1] then
  return 0
end
if tonumber(ARGV[3]) >= (tonumber(there[2] or '') or 0) then
  redis.call('HSET', KEYS[1], 'state', math.max(tonumber(ARGV[2]), least(there[3])), 'stated', ARGV[3])
end
return 1
