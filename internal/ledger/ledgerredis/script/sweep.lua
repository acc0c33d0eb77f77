#!lua
-- sweep.lua, after mark.lua: drops orders of dead generations, one step of a walk.
--
-- KEYS[1] group   hash: see install_begin.lua
-- KEYS[2] mark    hash: buyer -> mark
-- ARGV[1] cursor
-- ARGV[2] count   approximate number of marks in this step
--
-- Returns the next cursor, 0 at the end, and the bytes of the marks.

local live, staged = generations(KEYS[1])
local step = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', ARGV[2])
local found, bytes = step[2], 0
for i = 1, #found, 2 do
  bytes = bytes + #found[i + 1]
  local mark = compacted(found[i + 1], live, staged)
  if mark == '' then
    redis.call('HDEL', KEYS[2], found[i])
  elseif #mark < #found[i + 1] then
    redis.call('HSET', KEYS[2], found[i], mark)
  end
end
return {step[1], bytes}
