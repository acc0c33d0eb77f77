#!lua
-- do_release.lua, after numbered.lua and write.lua: returns the units of those
-- orders that their marks still hold. Only by number: the buyer tells where to
-- look. An order that had a key stays, with quantity 0.
--
-- KEYS[3] mark    hash: buyer -> mark (see mark.lua)
-- ARGV[5] orders  one after the other: number (16), length of the buyer (1), buyer

local RELEASED, NOT_HELD = '\7', '\8'

local orders, numbers, buyers = ARGV[5], {}, {}
local p = 1
while p <= #orders do
  local length = byte(orders, p + 16)
  numbers[#numbers + 1] = sub(orders, p, p + 15)
  buyers[#buyers + 1] = sub(orders, p + 17, p + 16 + length)
  p = p + 17 + length
end
local marks = #buyers > 0 and redis.call('HMGET', KEYS[3], unpack(buyers)) or {}

-- without is the mark after the release of an order, and its units; nothing
-- when the mark does not hold it.
local function without(mark, no)
  local p = 1
  while p <= #mark do
    local high, low, length = byte(mark, p + 26, p + 28)
    local quantity = high * 256 + low
    if quantity > 0 and sub(mark, p + 10, p + 25) == no and sub(mark, p, p + 3) == shard[9] then
      if length > 0 then
        return sub(mark, 1, p + 25) .. '\0\0' .. sub(mark, p + 28), quantity
      end
      return sub(mark, 1, p - 1) .. sub(mark, p + 29), quantity
    end
    p = p + 29 + length
  end
end

local codes, changed, units, released = {}, {}, 0, 0
for i = 1, #buyers do
  local mark, quantity = without(changed[buyers[i]] or marks[i] or '', numbers[i])
  codes[i] = NOT_HELD
  if mark then
    codes[i], changed[buyers[i]] = RELEASED, mark
    units, released = units + quantity, released + 1
  end
end

local free = tonumber(shard[5]) + units
if released > 0 then
  for buyer, mark in pairs(changed) do
    if mark == '' then
      redis.call('HDEL', KEYS[3], buyer)
    else
      redis.call('HSET', KEYS[3], buyer, mark)
    end
  end
  redis.call('HSET', KEYS[1], 'available', free, 'marked', tonumber(shard[6]) - units,
    'orders', tonumber(shard[7]) - released, 'releases', tonumber(shard[8]) + released)
end
return applied(pack('>I8I4', free, #codes) .. table.concat(codes) .. '\0')
