#!lua flags=no-writes
-- Returns the figures of one product's unacknowledged entries in one bucket.
--
-- KEYS 1 {bN}:out  2 {bN}:queue  3 {bN}:open:PRODUCT
-- ARGV 1 product
-- Reply: {entries, claims, head of the oldest entry}; {0} if there are none
local entries = redis.call('ZCARD', KEYS[3])
if entries == 0 then return {0} end
local claims = tonumber(redis.call('HGET', KEYS[2], 'n:' .. ARGV[1]) or '0') or 0
local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
local entry = redis.call('XRANGE', KEYS[1], oldest, oldest)[1]
local head = ''
if entry then
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'h' then head = entry[2][i + 1] end
  end
end
-- An entry has at least one claim. So a sum that was edited cannot claim that nothing waits.
return {entries, string.format('%.0f', math.max(claims, entries)), head}
