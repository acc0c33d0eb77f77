#!lua
-- do_clear.lua, after numbered.lua, write.lua and transfer.lua: clears the open record that the
-- peer has credited. If the peer credited a transfer that this shard does not know, this shard
-- has forgotten a debit.

local field = 'out:' .. ARGV[5]
local lastN, lastID, open = transfer(field)
if n > lastN or n == lastN and id ~= lastID then
  return lost(refused)
end
if n == lastN and open > 0 then
  open = 0
  redis.call('HSET', KEYS[1], field, pack('>I8c8I8', lastN, lastID, 0))
end
if open == 0 then
  lastID = '\0\0\0\0\0\0\0\0'
end
return applied(result(lastN, lastID, open))
