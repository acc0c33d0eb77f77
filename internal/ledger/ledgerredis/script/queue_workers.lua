#!lua flags=no-writes
-- Counts live workers.
--
-- KEYS 1 {b0}:workers
-- ARGV 1 greatest age of the last heartbeat in ms
-- Reply: their number
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = redis.pcall('ZCOUNT', KEYS[1], now - ARGV[1], '+inf')
if type(live) == 'table' and live.err then
  if not string.find(live.err, '^WRONGTYPE') then return live end
  return 0 -- overwritten by hand; the next worker repairs it
end
return live
