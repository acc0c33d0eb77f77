#!lua flags=allow-oom
-- Hands entries of one bucket back, those that the consumer holds and no
-- others.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer that stands for "handed back"
--      4 1 if the consumer has shown them to nobody, and nobody before it: they
--        count as never delivered; else 0
--      5... ids
-- Reply: how many were handed back
local out, group, me, returned = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', out) == 0 then return 0 end

local back = {}
for i = 5, #ARGV do
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
  if ARGV[4] == '1' then
    back[count + 2], back[count + 3] = 'RETRYCOUNT', 0
  end
  redis.call('XCLAIM', out, group, returned, 0, unpack(back))
end
return count
