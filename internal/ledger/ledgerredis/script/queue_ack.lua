#!lua flags=allow-oom
-- Acknowledges entries of one bucket if the stream has the witness, and trims acknowledged
-- entries. Without entries it only checks the witness and trims.
--
-- KEYS 1 {bN}:out  2 {bN}:queue  3... {bN}:open:PRODUCT, a key per product
-- ARGV 1 group  2 witness ("SEQ-TAG", empty for none)
--      3 length up to which the stream is not trimmed  4 most entries to trim
--      then per product: its id, number of entries, and per entry id, claims
-- Reply: -1 if the witness is lost, and nothing changed; else 1 if there may be
--        more to trim, 0 if not
local out, hash, group, witness = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local slack, most = tonumber(ARGV[3]), tonumber(ARGV[4])

local function seq(id) return tonumber(string.match(id, '^%d+')) end

local function has(id) return #redis.call('XRANGE', out, id, id) > 0 end

-- known: the stream has or had the witness. If the witness is below the highest one and below
-- all remaining entries, it was trimmed: a stream loses its end, not its middle, so if it has
-- the higher one, it had the lower one.
local function known(highest)
  if has(witness) then return true end
  if not highest or seq(witness) >= seq(highest) or not has(highest) then return false end
  local first = redis.call('XRANGE', out, '-', '+', 'COUNT', 1)
  return seq(witness) < seq(first[1][1])
end

local length = redis.call('XLEN', out)

local highest = redis.call('HGET', hash, 'witness') or nil
if witness ~= '' then
  if not known(highest) then return -1 end
  -- A higher witness that is not in the stream was never acknowledged. It would prevent
  -- this one from being kept.
  if not highest or seq(witness) > seq(highest) or witness ~= highest and not has(highest) then
    redis.call('HSET', hash, 'witness', witness)
    highest = witness
  end
end

-- settle removes one product's entries from the open set and the sum. An entry that is not in
-- the set was acknowledged before, and counts once. The set is deleted with its last entry, and
-- then not read again: while a slot moves to another node, reading a missing key ends the
-- script. An invalid sum counts as none, because it must not stop the acknowledgement half-way.
local function settle(open, product, first, last)
  local left, ids, claims, sum = redis.call('ZCARD', open), {}, 0, 'n:' .. product
  for i = first, last, 2 do
    ids[#ids + 1] = ARGV[i]
    if left > 0 and redis.call('ZREM', open, ARGV[i]) == 1 then
      left, claims = left - 1, claims + ARGV[i + 1]
    end
  end
  redis.call('XACK', out, group, unpack(ids))
  if left == 0 then
    redis.call('HDEL', hash, sum)
  elseif claims > 0 then
    local rest = redis.pcall('HINCRBY', hash, sum, string.format('%.0f', -claims))
    if type(rest) == 'table' and rest.err then redis.call('HDEL', hash, sum) end
  end
end

local at = 5
for k = 3, #KEYS do
  local product, last = ARGV[at], at + 1 + 2 * ARGV[at + 1]
  settle(KEYS[k], product, at + 2, last)
  at = last + 1
end

-- The floor is the lowest of: the oldest entry that a consumer holds, the first entry that was
-- never delivered, the highest witness.
local function floor()
  local below
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', out)) do
    local is = {}
    for i = 1, #row, 2 do is[row[i]] = row[i + 1] end
    if is.name == group then
      below = seq(is['last-delivered-id']) + 1
      if is.pending > 0 then below = math.min(below, seq(redis.call('XPENDING', out, group)[2])) end
    end
  end
  return below and math.min(below, seq(highest))
end

if not highest or length <= slack then return 0 end
local below = floor()
if not below then return 0 end
local trimmed = redis.call('XTRIM', out, 'MINID', '~', string.format('%.0f', below), 'LIMIT', most)
return trimmed * 2 > most and 1 or 0
