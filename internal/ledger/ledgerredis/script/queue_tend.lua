#!lua flags=allow-oom
-- Maintains one bucket's group for a live consumer: returns entries of dead consumers to the
-- queue, and removes dead consumers and those that were idle for long and hold nothing. The
-- caller knows which consumers are dead (queue_heartbeat.lua). The idle time of an entry does not
-- show it: a live worker may hold entries as long as a recovery takes.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer of returned entries
--      4 a consumer that is idle for so many ms is removed  5 most entries to
--      return in this step  6 the version of the format that the caller reads
--      7 number of dead consumers, then their names
-- Reply: {entries that the consumer holds, returned entries that wait,
--         acknowledged entries that are not trimmed, 1 if dead consumers hold
--         more, then the names of others that hold entries}
local out, group, me, returned = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local forget, left, dead = tonumber(ARGV[4]), tonumber(ARGV[5]), {}
for i = 8, 7 + ARGV[7] do dead[ARGV[i]] = true end

if redis.call('EXISTS', out) == 0 then return {0, 0, 0, 0} end

local mine, waiting, more, holders = 0, 0, 0, {}

local function fields(row)
  local is = {}
  for i = 1, #row, 2 do is[row[i]] = row[i + 1] end
  return is
end

local function handBack(name)
  local ids = {}
  if left > 0 then
    for i, row in ipairs(redis.call('XPENDING', out, group, '-', '+', left, name)) do ids[i] = row[1] end
  end
  left = left - #ids
  waiting = waiting + #ids
  if #ids > 0 then
    ids[#ids + 1] = 'JUSTID'
    redis.call('XCLAIM', out, group, returned, 0, unpack(ids))
  end
  if #redis.call('XPENDING', out, group, '-', '+', 1, name) > 0 then
    more = 1
  else
    redis.call('XGROUP', 'DELCONSUMER', out, group, name)
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
  elseif is.name == returned or is.name == 'version-' .. ARGV[6] then
    waiting = waiting + is.pending
  elseif string.find(is.name, '^version%-%d+$') and is.pending > 0 then
    -- They wait for readers of their version.
  elseif dead[is.name] then
    handBack(is.name)
  elseif is.pending > 0 then
    holders[#holders + 1] = is.name
  elseif is.idle > forget then
    redis.call('XGROUP', 'DELCONSUMER', out, group, is.name)
  end
end

local spare = 0
for _, row in ipairs(redis.call('XINFO', 'GROUPS', out)) do
  local is = fields(row)
  if is.name == group and is.lag then spare = redis.call('XLEN', out) - is.pending - is.lag end
end
return {mine, waiting, spare, more, unpack(holders)}
