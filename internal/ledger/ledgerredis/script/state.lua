#!lua
-- state.lua sets the state of the sale on a shard of exactly this epoch.
-- Returns 1 if it is.
--
-- KEYS[1] shard   hash: the shard's figures
-- ARGV[1] epoch
-- ARGV[2] state

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'state', ARGV[2])
return 1
