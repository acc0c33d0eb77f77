#!lua flags=allow-oom
-- install_room.lua: one step of an install. It removes entries from the open set that are not
-- in the stream, and returns entries to the queue that no worker would get. A key of another
-- type is deleted. Sums that counted missing entries are deleted with the last entry.
--
-- KEYS[1] out    stream: the outbox
-- KEYS[2] queue  hash: the outbox's counter and figures
-- KEYS[3] open   sorted set: the product's unacknowledged entries
-- ARGV[1] product, decimal
-- ARGV[2] rank   in the set at which the step begins
-- ARGV[3] most   entries that a step reads
-- ARGV[4] group
-- ARGV[5] the consumer of returned entries
--
-- Returns the rank at which the next step begins, -1 at the end, and the number of missing
-- entries.

for i, kind in ipairs({'stream', 'hash', 'zset'}) do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= kind and is ~= 'none' then
    redis.call('UNLINK', KEYS[i])
  end
end
local first, most, gone = tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local delivered = lastDelivered(KEYS[1], ARGV[4])
local found = redis.call('ZRANGE', KEYS[3], first, first + most - 1)
for _, id in ipairs(found) do
  if #redis.call('XRANGE', KEYS[1], id, id) == 0 then
    gone[#gone + 1] = id
  elseif delivered and passed(KEYS[1], ARGV[4], delivered, id) then
    redis.call('XCLAIM', KEYS[1], ARGV[4], ARGV[5], 0, id, 'FORCE', 'JUSTID')
  end
end
if #gone > 0 then
  redis.call('ZREM', KEYS[3], unpack(gone))
  if redis.call('ZCARD', KEYS[3]) == 0 then
    redis.call('HDEL', KEYS[2], 'n:' .. ARGV[1])
  end
end
return {#found < most and -1 or first + #found - #gone, #gone}
