#!lua flags=no-writes
-- Reads the length of one bucket's stream, and the names of its consumers.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group
-- Reply: {length, name...}
if redis.call('EXISTS', KEYS[1]) == 0 then return {0} end
local reply = {redis.call('XLEN', KEYS[1])}
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return reply end -- no group yet
for _, row in ipairs(consumers) do
  for i = 1, #row, 2 do
    if row[i] == 'name' then reply[#reply + 1] = row[i + 1] end
  end
end
return reply
