#!lua flags=allow-oom
-- After damage.lua, stream.lua and id.lua: finds entries of one product in one
-- bucket that wait to be acknowledged and that nobody will ever get: gone from the
-- stream (or never in it: what waits is no id), or in it, delivered, and with no
-- consumer. Neither can come of what the other scripts do; somebody
-- has tampered with the stream. With ARGV 5 it mends: those without a consumer
-- are handed back, to be delivered again, those that are gone are no longer
-- waited for, and a key in whose place is something else is deleted, as is a
-- stream that takes no entry any more. The stream is every product's: it is
-- deleted for product 0 only, which says that all of them know of the loss.
--
-- KEYS 1 {bN}:out  2 {bN}:queue  3 {bN}:open:PRODUCT
-- ARGV 1 group  2 the consumer that stands for "handed back"  3 product
--      4 most entries to look at, the oldest first  5 1 to mend, 0 to look only
-- Reply: {entries that are gone, entries without a consumer, 1 if the stream is
--         lost whole and is still there}
local out, hash, open = KEYS[1], KEYS[2], KEYS[3]
local group, returned, product, mend = ARGV[1], ARGV[2], ARGV[3], ARGV[5] == '1'

local saw = {}
for key, look in pairs({[out] = 'XLEN', [hash] = 'HLEN', [open] = 'ZCARD'}) do
  saw[key] = redis.pcall(look, key)
  if failed(saw[key]) then return saw[key] end
  if wrongType(saw[key]) then
    saw[key] = false
    if mend and key ~= out then redis.call('UNLINK', key) end
  end
end
local waiting = saw[open] or 0
if not saw[out] or (youngest(out) or 0) >= MOST_SEQ then
  if not mend or product ~= '0' then return {saw[out] and 0 or waiting, 0, 1} end
  redis.call('UNLINK', out)
end
if waiting == 0 then return {0, 0, 0} end

local function seq(id) return tonumber(string.match(id, '^%d+')) end

local function field(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then return list[i + 1] end
  end
end

local delivered
if redis.call('EXISTS', out) == 1 then
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', out)) do
    if field(row, 'name') == group then delivered = seq(field(row, 'last-delivered-id')) end
  end
end

local gone, alone, claims, units = {}, {}, 0, 0
for _, id in ipairs(redis.call('ZRANGE', open, 0, ARGV[4] - 1)) do
  local entry = isID(id) and redis.call('XRANGE', out, id, id)[1]
  if not entry then
    gone[#gone + 1] = id
  else
    claims = claims + (tonumber(field(entry[2], 'n')) or 0)
    units = units + (tonumber(field(entry[2], 'u')) or 0)
    if delivered and seq(id) <= delivered and #redis.call('XPENDING', out, group, id, id, 1) == 0 then
      alone[#alone + 1] = id
    end
  end
end

if mend and #alone > 0 then
  local claim = {out, group, returned, 0}
  for _, id in ipairs(alone) do claim[#claim + 1] = id end
  claim[#claim + 1], claim[#claim + 2] = 'FORCE', 'JUSTID'
  redis.call('XCLAIM', unpack(claim))
end
if mend and #gone > 0 then
  redis.call('ZREM', open, unpack(gone))
  if waiting == #gone then
    redis.call('HDEL', hash, 'n:' .. product, 'u:' .. product)
  elseif waiting <= tonumber(ARGV[4]) then
    redis.call('HSET', hash, 'n:' .. product, string.format('%.0f', claims), 'u:' .. product, string.format('%.0f', units))
  end
end
return {#gone, #alone, 0}
