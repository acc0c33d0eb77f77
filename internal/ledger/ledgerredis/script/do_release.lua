#!lua
-- do_release.lua, after numbered.lua, write.lua and mark.lua: returns the units of orders that
-- are live in their marks. The number selects the order; the buyer only locates its mark. An
-- order with a key stays, with quantity 0.
--
-- KEYS[3] mark    hash: buyer -> mark (see mark.lua)
-- ARGV[5] orders  one after the other: number (16), length of the buyer (1), buyer

local RELEASED, NOT_HELD, UNDECIDED = '\7', '\8', '\11'

local orders, numbers, buyers = ARGV[5], {}, {}
local p = 1
while p <= #orders do
  local length = byte(orders, p + 16)
  numbers[#numbers + 1] = sub(orders, p, p + 15)
  buyers[#buyers + 1] = sub(orders, p + 17, p + 16 + length)
  p = p + 17 + length
end

-- read decodes a mark: its orders, and the position of each live order of the product. A mark
-- may be long, so it is read once for all of its orders in the call. It returns nothing for an
-- invalid mark.
local function read(mark)
  local it, p = {}, 1
  while p <= #mark do
    local high, low, size, length = byte(mark, p + 26, p + 29)
    if not length or length > size then
      return nil
    end
    it[#it + 1] = sub(mark, p, p + 29 + size)
    if high + low > 0 and sub(mark, p, p + 3) == shard[9] then
      it[sub(mark, p + 10, p + 25)] = #it
    end
    p = p + 30 + size
  end
  return p == #mark + 1 and it or nil
end

-- looked counts the orders of long marks that were read. After MOST_LOOKED orders, further long
-- marks are not read.
local looked = 0
local function look(buyer)
  if looked >= MOST_LOOKED and redis.call('HSTRLEN', KEYS[3], buyer) > SHORT then
    return UNDECIDED
  end
  local mark = redis.call('HGET', KEYS[3], buyer) or ''
  local it = read(mark)
  if it and #mark > SHORT then
    looked = looked + #it
  end
  return it
end

local known, changed, codes, units, released = {}, {}, {}, 0, 0
for i = 1, #buyers do
  local buyer, no = buyers[i], numbers[i]
  local it = known[buyer] or look(buyer)
  if not it then
    redis.call('HDEL', KEYS[3], buyer) -- the rebuild writes it again
    return lost(refused)
  end
  known[buyer] = it
  local at = it ~= UNDECIDED and it[no]
  codes[i] = it == UNDECIDED and UNDECIDED or NOT_HELD
  if at then
    local order = it[at]
    local high, low, _, length = byte(order, 27, 30)
    it[at] = length > 0 and sub(order, 1, 26) .. '\0\0' .. sub(order, 29) or ''
    it[no] = nil
    codes[i], changed[buyer] = RELEASED, it
    units, released = units + high * 256 + low, released + 1
  end
end

-- Before the first write: invalid figures end the script here.
local free, marked = tonumber(shard[5]) + units, tonumber(shard[6]) - units
local left, releases = tonumber(shard[7]) - released, tonumber(shard[8]) + released
if released > 0 then
  for buyer, it in pairs(changed) do
    local mark = table.concat(it)
    if mark == '' then
      redis.call('HDEL', KEYS[3], buyer)
    else
      redis.call('HSET', KEYS[3], buyer, mark)
    end
  end
  redis.call('HSET', KEYS[1], 'available', free, 'marked', marked, 'orders', left, 'releases', releases)
end
return applied(pack('>I8I4', free, #codes) .. table.concat(codes) .. '\0')
