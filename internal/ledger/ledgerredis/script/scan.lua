#!lua flags=no-writes
-- scan.lua: one step of naming the buyers who have a mark.
--
-- KEYS[1] mark    hash: buyer -> mark
-- ARGV[1] cursor
-- ARGV[2] count   of marks that a step looks at, about
--
-- Returns the next cursor, 0 at the end, and the buyers.

local step = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local reply, found = {step[1]}, step[2]
for i = 1, #found, 2 do
  reply[#reply + 1] = found[i]
end
return reply
