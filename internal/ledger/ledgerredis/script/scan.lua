#!lua flags=no-writes
-- scan.lua, after walk.lua: lists the buyers that have a mark, one step of a walk.
--
-- KEYS[1] mark    hash: buyer -> mark
-- ARGV[1] cursor
-- ARGV[2] count   approximate number of marks in this step
--
-- Returns the next cursor, 0 at the end, the bytes of the marks, and the buyers.

local step = walked(KEYS[1], ARGV[1], ARGV[2])
local reply, found, bytes = {step[1], '0'}, step[2], 0
for i = 1, #found, 2 do
  reply[#reply + 1] = found[i]
  bytes = bytes + #found[i + 1]
end
reply[2] = string.format('%.0f', bytes)
return reply
