#!lua
-- do_credit.lua, after numbered.lua, write.lua and transfer.lua: adds units from the peer, once
-- per number. If the number is beyond the next, this shard has forgotten a credit.

local field = 'in:' .. ARGV[5]
local lastN, lastID = transfer(field)
if n > lastN + 1 then
  return lost(refused)
end
if n == lastN + 1 then
  free, lastN, lastID = free + units, n, id
  redis.call('HSET', KEYS[1], field, pack('>I8c8I8', n, id, 0), 'available', free, 'received', tonumber(shard[12]) + units)
end
return applied(result(lastN, lastID, 0))
