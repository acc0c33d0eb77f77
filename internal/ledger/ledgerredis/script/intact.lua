#!lua flags=no-writes
-- intact.lua looks whether the oldest entry that a
-- product waits for is in the stream.
--
-- KEYS[1] out    stream: the outbox
-- KEYS[2] open   sorted set: the product's entries that are not acknowledged
--
-- Returns 1 if it is, or if nothing waits; else 0.

local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if oldest and #redis.call('XRANGE', KEYS[1], oldest, oldest) == 0 then
  return 0
end
return 1
