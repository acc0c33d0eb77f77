#!lua
-- do_debit.lua, after numbered.lua, write.lua and transfer.lua: removes units for the peer, if
-- the number is the next and no record is open. If no unit is free, it opens no record: the
-- reader of the reply could not tell a record without units from none.

local field = 'out:' .. ARGV[5]
local lastN, lastID, open = transfer(field)
units = math.min(units, free)
if open == 0 and n == lastN + 1 and units > 0 then
  free = free - units
  redis.call('HSET', KEYS[1], field, pack('>I8c8I8', n, id, units), 'available', free, 'sent', tonumber(shard[11]) + units)
  return applied(result(n, id, units))
end
if open == 0 then
  lastID = '\0\0\0\0\0\0\0\0'
end
return applied(result(lastN, lastID, open))
