#!lua flags=allow-oom
-- Returns a consumer's entries in one bucket to the queue, in bounded steps, and removes the
-- consumer when it has none left.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer of returned entries
--      4 most entries in this step
-- Reply: 1 if the consumer still holds entries, else 0
local out, group, me, returned, most = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if redis.call('EXISTS', out) == 0 then return 0 end

local held = redis.pcall('XPENDING', out, group, '-', '+', most, me)
if held.err then
  if not string.find(held.err, '^NOGROUP') then return held end
  return 0
end
if #held > 0 then
  local ids = {}
  for i, row in ipairs(held) do ids[i] = row[1] end
  ids[#ids + 1] = 'JUSTID'
  redis.call('XCLAIM', out, group, returned, 0, unpack(ids))
end
-- Checked again, because XGROUP DELCONSUMER drops remaining entries.
if #redis.call('XPENDING', out, group, '-', '+', 1, me) > 0 then return 1 end
redis.call('XGROUP', 'DELCONSUMER', out, group, me)
return 0
