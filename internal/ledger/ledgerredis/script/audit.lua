#!lua flags=no-writes
-- audit.lua, after walk.lua: counts the live orders of one product in some marks of a shard,
-- one step of a walk.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] group   hash: product -> live generation
-- KEYS[3] mark    hash: buyer -> mark (see mark.lua)
-- ARGV[1] product, decimal
-- ARGV[2] cursor
-- ARGV[3] count   approximate number of marks in this step
-- ARGV[4] most    if there are more marks, none is read
--
-- Returns the next cursor, 0 at the end; the shard's epoch, releases, marked and orders; and
-- units, live orders and bytes of the step's marks. If there are more than ARGV[4] marks, it
-- returns nothing.

local byte, sub = string.byte, string.sub
local shard = redis.call('HMGET', KEYS[1], 'generation', 'epoch', 'releases', 'marked', 'orders')
local reply = {'0', shard[2] or '0', shard[3] or '0', shard[4] or '0', shard[5] or '0', 0, 0, 0}
-- If the group does not call the generation live, its orders do not count.
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
  if p == size + 1 then -- an invalid mark holds nothing
    units, orders = units + taken, orders + live
  end
  bytes = bytes + size
end
reply[1], reply[6], reply[7], reply[8] = step[1], units, orders, bytes
return reply
