#!lua
-- do_reserve.lua, after numbered.lua, write.lua and mark.lua: decides a batch of claims in
-- order, each after those before it. The accepted ones make one entry.
--
-- KEYS[3] group   hash: product -> live generation (4 bytes)
-- KEYS[4] mark    hash: buyer -> mark
-- KEYS[5] out     stream: the outbox
-- KEYS[6] queue   hash: the outbox's counter and figures
-- KEYS[7] open    sorted set: the product's unacknowledged entries
-- ARGV[5] head    of the entry
-- ARGV[6] claims  one after the other: length of the rest (2), the part that a
--                 mark keeps (see mark.lua), length of the buyer (1), buyer, and
--                 the part that only the entry has
-- ARGV[7] orders  the numbers of the claims, 16 bytes each
-- ARGV[8] tag     of the entry, decimal
-- ARGV[9] adopt   '1' or '0'
-- ARGV[10] product, decimal
-- ARGV[11] most   dead orders that may be remembered of a buyer
-- ARGV[12] channel  for notes about accepted buyers, or ''
-- ARGV[13] notes  the group (4 bytes), the hashes of the claims' buyers, 8 bytes
--                 each, and a tag (8 bytes)

local ACCEPTED, REPEATED, SOLD_OUT, OVER_LIMIT, PAUSED, ENDED, REFUSED = '\1', '\2', '\3', '\4', '\5', '\6', '\10'
local UNDECIDED = '\11'

-- Bounds of a step, in bytes: of an order in a mark; of marks that are read at once, and after
-- which no more are read (0.8 MB take a millisecond); and of long lists of orders in verdicts
-- over the limit.
local LONGEST, MOST_READ, MOST_TOLD = 30 + 64, 3 * 2 ^ 18, 2 ^ 18

local claims, count, adopt = ARGV[6], #ARGV[7] / 16, ARGV[9] == '1'
local limit, free, most = tonumber(shard[4]), tonumber(shard[5]), tonumber(ARGV[11])
local closed = not adopt and (shard[3] == '1' and PAUSED or shard[3] == '2' and ENDED)

-- Counters give the length of tables, because Lua searches for it.
local starts, buyers = {}, {} -- starts: after the length
local asked, place, distinct = {}, {}, 0 -- each buyer once; buyer -> index in asked
local p = 1
for i = 1, count do
  local high, low = byte(claims, p, p + 1)
  local at = p + 22 + byte(claims, p + 20)
  local buyer = sub(claims, at + 1, at + byte(claims, at))
  starts[i], buyers[i] = p + 2, buyer
  if not place[buyer] then
    distinct = distinct + 1
    asked[distinct], place[buyer] = buyer, distinct
  end
  p = p + 2 + high * 256 + low
end
starts[count + 1] = p + 2

-- portions reads the marks of many buyers in portions, by index. A long mark beyond the bound
-- is true.
local function portions(size)
  local marks, total, from = {}, 0, 1
  while from <= distinct and total < MOST_READ do
    local upto = math.min(from + size - 1, distinct)
    local some = redis.call('HMGET', KEYS[4], unpack(asked, from, upto))
    for i = from, upto do
      local mark = some[i - from + 1]
      if mark then
        marks[i], total = mark, total + #mark
      end
    end
    from = upto + 1
  end
  for i = from, distinct do
    local length = redis.call('HSTRLEN', KEYS[4], asked[i])
    if length > 0 then
      marks[i] = length > SHORT or redis.call('HGET', KEYS[4], asked[i])
    end
  end
  return marks
end

local portion, marks = math.max(1, math.floor(MOST_READ / ((limit + most) * LONGEST)))
if distinct > portion then
  marks = portions(portion)
else
  marks = count > 0 and redis.call('HMGET', KEYS[4], unpack(asked)) -- by index
end

local live, staged = generations(KEYS[3])
if not live[shard[9]] then
  return lost(refused) -- the group has forgotten the product, so its marks would not count
end
local figures = redis.call('HMGET', KEYS[6], 'seq', 'n:' .. ARGV[10])

-- youngest returns the SEQ of the last entry that the stream ever had, or nil.
local function youngest()
  local stream = redis.pcall('XINFO', 'STREAM', KEYS[5])
  for i = 1, #stream, 2 do
    if stream[i] == 'last-generated-id' then
      return tonumber(string.match(stream[i + 1], '^%d+'))
    end
  end
end

-- If the counter is gone, continue after the stream's last entry.
local seq = (tonumber(figures[1] or '') or youngest() or 0) + 1
local stamp = shard[9] .. pack('>I6', seq)

-- wanted has the numbers and keys of the batch's claims. Only these are looked up in marks.
local wanted
local function want()
  wanted = {}
  for i = 1, count do
    local from = starts[i]
    local length = byte(claims, from + 19)
    wanted[sub(claims, from, from + 15)] = true
    if length > 0 then
      wanted[sub(claims, from + 19, from + 19 + length)] = true
    end
  end
end

-- known returns the facts that decide a buyer's claims: live units, the number of dead orders,
-- for each wanted key its order (the key has its length in front, so it never equals a number),
-- and the wanted numbers with a live order. A mark may be long, so it is read once per batch.
-- It returns nil for an invalid mark.
local buyersKnown, looked = {}, 0 -- looked: number of orders of long marks that were read
local function known(buyer, mark)
  if not wanted then
    want()
  end
  local it, units, orders, returned, stale, p = {mark = mark}, 0, 0, 0, false, 1
  while p <= #mark do
    local high, low, size, length = byte(mark, p + 26, p + 29)
    if not length or length > size then
      return nil
    end
    orders = orders + 1
    if live[sub(mark, p, p + 3)] then
      local no = sub(mark, p + 10, p + 25)
      if high + low > 0 then
        units = units + high * 256 + low
        it[no] = wanted[no] and no
      else
        returned = returned + 1
      end
      if length > 0 then
        local key = sub(mark, p + 29, p + 29 + length)
        if wanted[key] then
          it[key] = no
        end
      end
    else
      stale = true
    end
    p = p + 30 + size
  end
  if p ~= #mark + 1 then
    return nil
  end
  if stale then
    it.mark = compacted(mark, live, staged)
  end
  if #mark > SHORT then
    looked = looked + (stale and 2 or 1) * orders
  end
  it.units, it.returned = units, returned
  buyersKnown[buyer] = it
  return it
end

-- holds lists the live orders of a buyer over the limit. It returns nil if too much was read or
-- listed before.
local told = 0 -- bytes of long lists
local function holds(it)
  local spent = told > 0 and (looked >= MOST_LOOKED or told >= MOST_TOLD)
  if not it.list then
    local mark, numbers, p = it.parts and table.concat(it.parts) or it.mark, {}, 1
    if spent and #mark > SHORT then
      return nil
    end
    while p <= #mark do
      looked = looked + 1
      local high, low, size = byte(mark, p + 26, p + 28)
      if high + low > 0 and live[sub(mark, p, p + 3)] then
        numbers[#numbers + 1] = sub(mark, p + 10, p + 25)
      end
      p = p + 30 + size
    end
    it.list = pack('>I2', #numbers) .. table.concat(numbers)
  end
  if #it.list > SHORT then
    if spent then
      return nil
    end
    told = told + #it.list
  end
  return it.list
end

-- Nearly all buyers have no mark before, and one order: then the mark is that order alone.
-- fields has the fields and values to write. written is the position of a buyer's mark in it.
-- Marks of known buyers are assembled at the end.
local codes, extras, picked, accepted = {}, {}, {}, 0
local fields, written, filled, units = {}, {}, 0, 0
for i = 1, count do
  local from, buyer = starts[i], buyers[i]
  local high, low, size, length = byte(claims, from + 16, from + 19)
  local quantity = high * 256 + low
  local no, key, repeated = nil, nil, nil
  local it, at = buyersKnown[buyer], written[buyer]
  if not it then
    local mark = at and fields[at] or marks[place[buyer]]
    if mark then
      if mark == true or looked >= MOST_LOOKED and #mark > SHORT then
        repeated = UNDECIDED
      else
        it = known(buyer, mark)
        if not it then
          -- The buyer's orders are unknown. The rebuild restores them.
          redis.call('HDEL', KEYS[4], buyer)
          return lost(refused)
        end
      end
    end
  end
  local taken, returned = 0, 0
  if it then
    no, key = sub(claims, from, from + 15), length > 0 and sub(claims, from + 19, from + 19 + length)
    taken, returned = it.units, it.returned
    local ofKey, held = key and it[key], it[no]
    repeated = adopt and (held or ofKey) or ofKey or held
  end
  local code = ACCEPTED
  if repeated then
    code = repeated
    if repeated ~= UNDECIDED then
      code = REPEATED
      extras[#extras + 1] = repeated
    end
  elseif closed then
    code = closed
  elseif taken + quantity > limit then
    local list = '\0\0'
    if it then
      list = holds(it)
    end
    code = list and OVER_LIMIT or UNDECIDED
    extras[#extras + 1] = list
  elseif returned >= most and not adopt then
    code = REFUSED
  elseif quantity > free then
    code = SOLD_OUT
  else
    local order = stamp .. sub(claims, from, from + 19 + size)
    if not at then
      at, filled = filled + 2, filled + 2
      fields[at - 1], written[buyer] = buyer, at
    end
    if it then
      it.parts = it.parts or {it.mark}
      it.parts[#it.parts + 1], fields[at] = order, it
      it.units, it.list = taken + quantity, nil
      it[no] = no
      if key then
        it[key] = no
      end
    else
      fields[at] = order
    end
    free, units, accepted = free - quantity, units + quantity, accepted + 1
    picked[accepted] = i
  end
  codes[i] = code
end

-- overtaken handles an entry that the stream refused. After a power cut the stream may be ahead
-- of the counter. Then the counter catches up, and the call must be repeated. Otherwise the
-- whole bucket would refuse entries forever.
local function overtaken(refusal)
  local ahead = youngest()
  if not ahead or ahead < seq then
    return refusal
  end
  redis.call('HSET', KEYS[6], 'seq', ahead)
  return {err = 'TRYAGAIN the outbox was ahead of its counter'}
end

if accepted > 0 then
  local entry, notes = claims, ARGV[13]
  if accepted < count then
    local noted = {sub(notes, 1, 4)}
    for i = 1, accepted do
      noted[i + 1] = sub(notes, 8 * picked[i] - 3, 8 * picked[i] + 4)
      picked[i] = sub(claims, starts[picked[i]] - 2, starts[picked[i] + 1] - 3)
    end
    noted[accepted + 2] = sub(notes, -8)
    entry, notes = table.concat(picked), table.concat(noted)
  end
  -- The script must not stop half-way. Invalid figures end it before its first write.
  -- Shard, lane, group, mark and queue were read, so their types are right. The open set
  -- and the stream remain, and are written first: if the set refuses, nothing has
  -- changed; if the stream refuses, the set is restored. (script/trial.lua tests the
  -- rights when a ledger is opened.)
  local marked, orders = tonumber(shard[6]) + units, tonumber(shard[7]) + accepted
  local id = string.format('%.0f-%s', seq, ARGV[8])
  redis.call('ZADD', KEYS[7], seq, id)
  local added = redis.pcall('XADD', KEYS[5], id, 'h', ARGV[5], 'l', shard[4], 'c', entry)
  if type(added) == 'table' and added.err then
    redis.call('ZREM', KEYS[7], id)
    return overtaken(added)
  end
  redis.call('HSET', KEYS[6], 'seq', seq, 'n:' .. ARGV[10], (tonumber(figures[2] or '0') or 0) + accepted)
  for buyer, it in pairs(buyersKnown) do
    if it.parts then
      fields[written[buyer]] = table.concat(it.parts)
    end
  end
  redis.call('HSET', KEYS[4], unpack(fields))
  redis.call('HSET', KEYS[1], 'available', free, 'marked', marked, 'orders', orders)
  -- In the same step, so that the note is sent even if the instance dies. A missing right
  -- to publish must not undo the step.
  if ARGV[12] ~= '' then
    redis.pcall('PUBLISH', ARGV[12], notes)
  end
end

return applied(pack('>I8I4', free, count) .. table.concat(codes) .. table.concat(extras) .. '\0',
  accepted > 0 and ARGV[7] or nil)
