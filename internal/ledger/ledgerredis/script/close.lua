#!lua
-- close.lua closes a shard of this epoch or a lower one.
--
-- KEYS[1] shard   hash: the shard's figures
-- ARGV[1] epoch

local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and (tonumber(epoch) or 0) <= tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], 'open', '0')
end
return 1
