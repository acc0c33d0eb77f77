#!lua flags=no-writes
-- Returns the length of one bucket's stream, and how many of its entries wait for readers of
-- another version than the caller's (queue_receive.lua).
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 the version of the format that the caller reads
-- Reply: {length, entries of other versions}
local others, length = 0, redis.call('XLEN', KEYS[1])
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
for _, row in ipairs(consumers) do -- empty if there is no group
  local is = {}
  for i = 1, #row, 2 do is[row[i]] = row[i + 1] end
  if string.find(is.name, '^version%-%d+$') and is.name ~= 'version-' .. ARGV[2] then others = others + is.pending end
end
return {length, others}
