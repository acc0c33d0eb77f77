#!lua
-- open.lua opens a shard that has exactly this epoch. Returns 1 if it has.
--
-- KEYS[1] shard   hash: the shard's figures
-- ARGV[1] epoch

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'open', '1')
return 1
