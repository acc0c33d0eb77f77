#!lua
-- do_reserve.lua, after numbered.lua, write.lua and mark.lua: decides a batch
-- of claims in order, each upon those before it. Those accepted make one entry.
--
-- KEYS[3] group   hash: product -> live generation (4 bytes)
-- KEYS[4] mark    hash: buyer -> mark
-- KEYS[5] out     stream: the outbox
-- KEYS[6] queue   hash: the outbox's counter and figures
-- KEYS[7] open    sorted set: the product's entries that are not acknowledged
-- ARGV[5] head    of the entry
-- ARGV[6] claims  one after the other: number (16), quantity (2), length of
--                 the key (1), key, length of the buyer (1), buyer, length of
--                 the ref (1), ref
-- ARGV[7] orders  the numbers of the claims, 16 bytes each
-- ARGV[8] tag     of the entry, decimal
-- ARGV[9] adopt   '1' or '0'
-- ARGV[10] product, decimal
-- ARGV[11] most   orders and keys that a buyer may have remembered

local ACCEPTED, REPEATED, SOLD_OUT, OVER_LIMIT, PAUSED, ENDED, REFUSED = '\1', '\2', '\3', '\4', '\5', '\6', '\10'

local claims, count, adopt = ARGV[6], #ARGV[7] / 16, ARGV[9] == '1'
local limit, free, most = tonumber(shard[4]), tonumber(shard[5]), tonumber(ARGV[11])
local closed = not adopt and (shard[3] == '1' and PAUSED or shard[3] == '2' and ENDED)

local starts, ends, buyers = {}, {}, {}
local p = 1
for i = 1, count do
  local key = byte(claims, p + 18)
  local buyer = byte(claims, p + 19 + key)
  local from = p + 20 + key
  starts[i], buyers[i] = p, sub(claims, from, from + buyer - 1)
  p = from + buyer + 1 + byte(claims, from + buyer)
  ends[i] = p - 1
end
local marks = count > 0 and redis.call('HMGET', KEYS[4], unpack(buyers)) or {}

local live, staged = generations(KEYS[3])
local figures = redis.call('HMGET', KEYS[6], 'seq', 'n:' .. ARGV[10], 'u:' .. ARGV[10])
local seq = tonumber(figures[1] or '0') + 1
local stamp = shard[9] .. pack('>I6', seq)

-- remembered scans a mark for what decides a claim: live units, orders and
-- keys, the order of the key, whether the number is held, and whether there
-- is anything to drop.
local function remembered(mark, no, key)
  local units, orders, ofKey, held, dead = 0, 0, nil, false, false
  local p = 1
  while p <= #mark do
    local high, low, length = byte(mark, p + 26, p + 28)
    if live[sub(mark, p, p + 3)] then
      local quantity, other = high * 256 + low, sub(mark, p + 10, p + 25)
      units, orders = units + quantity, orders + 1
      if quantity > 0 and other == no then
        held = true
      end
      if length > 0 and sub(mark, p + 29, p + 28 + length) == key then
        ofKey = other
      end
    else
      dead = true
    end
    p = p + 29 + length
  end
  return units, orders, ofKey, held, dead
end

-- holds lists the live orders of a mark.
local function holds(mark)
  local numbers, p = {}, 1
  while p <= #mark do
    local high, low, length = byte(mark, p + 26, p + 28)
    if high + low > 0 and live[sub(mark, p, p + 3)] then
      numbers[#numbers + 1] = sub(mark, p + 10, p + 25)
    end
    p = p + 29 + length
  end
  return pack('>I2', #numbers) .. table.concat(numbers)
end

local codes, extras, picked = {}, {}, {}
local changed, units = {}, 0
for i = 1, count do
  local from, buyer = starts[i], buyers[i]
  local high, low, length = byte(claims, from + 16, from + 18)
  local quantity, mark = high * 256 + low, changed[buyer] or marks[i] or ''
  local taken, orders, ofKey, held, dead = 0, 0, nil, false, false
  local no
  if mark ~= '' then
    no = sub(claims, from, from + 15)
    taken, orders, ofKey, held, dead = remembered(mark, no, length > 0 and sub(claims, from + 19, from + 18 + length))
  end
  local code = ACCEPTED
  if ofKey or held then
    code = REPEATED
    extras[#extras + 1] = held and (adopt or not ofKey) and no or ofKey
  elseif closed then
    code = closed
  elseif orders >= most and not adopt then
    code = REFUSED
  elseif taken + quantity > limit then
    code = OVER_LIMIT
    extras[#extras + 1] = holds(mark)
  elseif quantity > free then
    code = SOLD_OUT
  else
    if dead then
      mark = compacted(mark, live, staged)
    end
    changed[buyer] = mark .. stamp .. sub(claims, from, from + 18 + length)
    free, units = free - quantity, units + quantity
    picked[#picked + 1] = i
  end
  codes[i] = code
end

local accepted = #picked
if accepted > 0 then
  local entry = claims
  if accepted < count then
    for i = 1, accepted do
      picked[i] = sub(claims, starts[picked[i]], ends[picked[i]])
    end
    entry = table.concat(picked)
  end
  -- The stream first: it is the only write that can be refused (by an id that
  -- is not above its last), and then nothing has changed.
  local id = string.format('%.0f-%s', seq, ARGV[8])
  redis.call('XADD', KEYS[5], id, 'h', ARGV[5], 'l', shard[4], 'n', accepted, 'u', units, 'c', entry)
  redis.call('ZADD', KEYS[7], seq, id)
  redis.call('HSET', KEYS[6], 'seq', seq, 'n:' .. ARGV[10], tonumber(figures[2] or '0') + accepted,
    'u:' .. ARGV[10], tonumber(figures[3] or '0') + units)
  local fields = {}
  for buyer, mark in pairs(changed) do
    fields[#fields + 1] = buyer
    fields[#fields + 1] = mark
  end
  redis.call('HSET', KEYS[4], unpack(fields))
  redis.call('HSET', KEYS[1], 'available', free, 'marked', tonumber(shard[6]) + units,
    'orders', tonumber(shard[7]) + accepted)
end

return applied(pack('>I8I4', free, count) .. table.concat(codes) .. table.concat(extras) .. '\0',
  accepted > 0 and ARGV[7] or nil)
