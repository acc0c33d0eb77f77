#!lua flags=no-writes
-- audit.lua, after walk.lua: one step of counting the live orders of one
-- product in the marks of a shard.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] group   hash: product -> live generation
-- KEYS[3] mark    hash: buyer -> mark (see mark.lua)
-- ARGV[1] product, decimal
-- ARGV[2] cursor
-- ARGV[3] count   of marks that a step looks at, about
-- ARGV[4] most    marks that are read at all
--
-- Returns the next cursor, 0 at the end; the shard's epoch, releases, marked and
-- orders; and units, live orders and bytes of the marks that the step found. With
-- more marks than are read: nothing.

local byte, sub = string.byte, string.sub
local shard = redis.call('HMGET', KEYS[1], 'generation', 'epoch', 'releases', 'marked', 'orders')
local reply = {'0', shard[2] or '0', shard[3] or '0', shard[4] or '0', shard[5] or '0', 0, 0, 0}
-- A generation that the group does not call live counts for nobody.
local generation = redis.call('HGET', KEYS[2], ARGV[1])
if not generation or generation ~= shard[1] then
  return reply
end
if redis.call('HLEN', KEYS[3]) > tonumber(ARGV[4]) then
  return {}
end

local step = walked(KEYS[3], ARGV[2], ARGV[3])
local found, units, orders, bytes = step[2], 0, 0, 0
for i = 2, #found, 2 do
  local mark = found[i]
  local size, taken, live, p = #mark, 0, 0, 1
  while p <= size do
    local high, low, after = byte(mark, p + 26, p + 28)
    if not after then
      break
    end
    if high + low > 0 and sub(mark, p, p + 3) == generation then
      taken, live = taken + high * 256 + low, live + 1
    end
    p = p + 30 + after
  end
  if p == size + 1 then -- what is no mark holds nothing
    units, orders = units + taken, orders + live
  end
  bytes = bytes + size
end
reply[1], reply[6], reply[7], reply[8] = step[1], units, orders, bytes
return reply
