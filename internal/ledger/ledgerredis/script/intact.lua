#!lua flags=no-writes
-- intact.lua looks whether the oldest entry that a product waits for is in the
-- stream, and comes to a worker: somebody holds it, or it was never delivered.
--
-- KEYS[1] out    stream: the outbox
-- KEYS[2] open   sorted set: the product's entries that are not acknowledged
-- ARGV[1] group
--
-- Returns 1 if it is, or if nothing waits; else 0.

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
