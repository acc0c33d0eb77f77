#!lua flags=allow-oom
-- Returns entries of one bucket to the queue, but only those that the consumer holds.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer of returned entries
--      4... ids
-- Reply: number of returned entries
local out, group, me, returned = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', out) == 0 then return 0 end

local back = {}
for i = 4, #ARGV do
  local held = redis.pcall('XPENDING', out, group, ARGV[i], ARGV[i], 1, me)
  if held.err then
    if not string.find(held.err, '^NOGROUP') then return held end
    return 0 -- a new group delivers everything again
  end
  if #held > 0 then back[#back + 1] = ARGV[i] end
end
local count = #back
if count > 0 then
  back[count + 1] = 'JUSTID'
  redis.call('XCLAIM', out, group, returned, 0, unpack(back))
end
return count
