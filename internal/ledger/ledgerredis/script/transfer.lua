-- transfer.lua, before the body of a transfer step (protocol 2).
--
-- ARGV[5] peer   the other shard
-- ARGV[6] n      number of the transfer
-- ARGV[7] id     of the transfer (8 bytes)
-- ARGV[8] units
--
-- The shard's field out:PEER is the last debit: number (8 bytes), id (8) and units (8), which
-- are 0 if no record is open. in:PEER is the last credit in the same form, with units 0.

local n, id, units, free = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), tonumber(shard[5])

-- transfer returns a record's number, id and units.
local function transfer(field)
  local there = redis.call('HGET', KEYS[1], field)
  if not there then
    return 0, '\0\0\0\0\0\0\0\0', 0
  end
  return unpacked('>I8c8I8', there)
end

local function result(n, id, units)
  return pack('>I8I4', free, 0) .. '\1' .. pack('>I4I8c8I8', tonumber(ARGV[5]), n, id, units)
end
