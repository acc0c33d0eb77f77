#!lua flags=allow-oom
-- Looks after one bucket's group on behalf of a living consumer: gives the
-- consumer's sign of life, hands back what silent consumers hold, and forgets
-- those that have been silent for long and hold nothing.
--
-- It is the consumer's silence that counts, not how long an entry lies still,
-- by which XAUTOCLAIM goes: a living worker holds entries for as long as a
-- recovery takes, and renewing each of them would cost a write each.
--
-- The sign is a claim of one entry that the consumer holds. It renews the
-- consumer's idle time, and unlike a read that finds nothing it reaches
-- replicas too. Silence is measured by the server's clock alone.
--
-- After stream.lua. A stream that is full can be used as little as something
-- else in its place, and is refused likewise, once everything in it is delivered.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer that stands for "handed back"
--      4 silence in ms  5 after how many ms a silent consumer is forgotten
--      6 most entries to hand back in this step
-- Reply: {entries the consumer holds, entries handed back that wait, entries
--         that are acknowledged and not trimmed, 1 if silent consumers hold more}
local out, group, me, returned = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local silence, forget, left = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

if redis.call('EXISTS', out) == 0 then return {0, 0, 0, 0} end

local mine, waiting, more = 0, 0, 0

local function fields(row)
  local is = {}
  for i = 1, #row, 2 do is[row[i]] = row[i + 1] end
  return is
end

local function handBack(name, pending)
  local ids = {}
  if left > 0 then
    for i, row in ipairs(redis.call('XPENDING', out, group, '-', '+', left, name)) do ids[i] = row[1] end
  end
  left = left - #ids
  waiting = waiting + #ids
  if #ids < pending then more = 1 end
  if #ids > 0 then
    ids[#ids + 1] = 'JUSTID'
    redis.call('XCLAIM', out, group, returned, 0, unpack(ids))
  end
end

local consumers = redis.pcall('XINFO', 'CONSUMERS', out, group)
if consumers.err then
  if not string.find(consumers.err, '^NOGROUP') then return consumers end
  redis.call('XGROUP', 'CREATE', out, group, '0')
  consumers = {}
end
for _, row in ipairs(consumers) do
  local is = fields(row)
  if is.name == me then
    mine = is.pending
  elseif is.name == returned then
    waiting = waiting + is.pending
  elseif is.idle > silence and is.pending > 0 then
    handBack(is.name, is.pending)
  elseif is.idle > forget and is.pending == 0 then
    redis.call('XGROUP', 'DELCONSUMER', out, group, is.name)
  end
end
if mine > 0 then
  local held = redis.call('XPENDING', out, group, '-', '+', 1, me)
  redis.call('XCLAIM', out, group, me, 0, held[1][1], 'JUSTID')
end

local spare = 0
for _, row in ipairs(redis.call('XINFO', 'GROUPS', out)) do
  local is = fields(row)
  if is.name == group and is.lag then spare = redis.call('XLEN', out) - is.pending - is.lag end
end
if (youngest(out) or 0) >= MOST_SEQ and waiting == 0 and more == 0 then
  local delivered
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', out)) do
    local is = fields(row)
    if is.name == group then delivered = is['last-delivered-id'] end
  end
  if #redis.call('XRANGE', out, '(' .. delivered, '+', 'COUNT', 1) == 0 then
    return {err = 'WRONGTYPE the stream is full: no id is left above its last'}
  end
end
return {mine, waiting, spare, more}
