#!lua flags=no-writes
-- intact.lua checks whether the product's oldest unacknowledged entry is in the stream, and a
-- worker will get it: a consumer holds it, or it was never delivered.
--
-- KEYS[1] out    stream: the outbox
-- KEYS[2] open   sorted set: the product's unacknowledged entries
-- ARGV[1] group
--
-- Returns 1 if so, or if there is no such entry; else 0.

local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if not oldest then
  return 1
end
if #redis.call('XRANGE', KEYS[1], oldest, oldest) == 0 then
  return 0
end
local delivered = lastDelivered(KEYS[1], ARGV[1])
if delivered and passed(KEYS[1], ARGV[1], delivered, oldest) then
  return 0
end
return 1
