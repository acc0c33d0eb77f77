#!lua
-- settle.lua removes the instruction that has this id.
--
-- KEYS[1] shard   hash: the shard's figures
-- ARGV[1] id

local kept = redis.call('HGET', KEYS[1], 'instruction')
if kept and string.match(kept, '^%d (%S+) ') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'instruction')
end
return 1
