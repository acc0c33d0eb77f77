#!lua flags=no-writes
-- scan.lua, after walk.lua: one step of naming the buyers who have a mark.
--
-- KEYS[1] mark    hash: buyer -> mark
-- ARGV[1] cursor
-- ARGV[2] count   of marks that a step looks at, about
--
-- Returns the next cursor, 0 at the end, how many bytes the marks had, and the
-- buyers.

local step = walked(KEYS[1], ARGV[1], ARGV[2])
local reply, found, bytes = {step[1], '0'}, step[2], 0
for i = 1, #found, 2 do
  reply[#reply + 1] = found[i]
  bytes = bytes + #found[i + 1]
end
reply[2] = string.format('%.0f', bytes)
return reply
