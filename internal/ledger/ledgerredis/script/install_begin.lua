#!lua
-- install_begin.lua, after damage.lua and whole.lua: begins an install over a lower epoch: it
-- takes the next generation of the group, under which marks are then staged.
-- Several installs of one product may be under way; the highest epoch stays.
--
-- A key that holds something else is deleted here, and made anew by the install.
-- Group and mark are those of all products of the group: the others are then
-- forgotten by the group, and have to be recovered as well.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] group   hash: product -> live generation; "next" -> the last that was
--                 taken; "stage:PRODUCT:TOKEN" -> generation (4 bytes), marks
--                 staged (8), epoch (8)
-- KEYS[3] mark    hash: buyer -> mark
-- ARGV[1] product
-- ARGV[2] epoch
-- ARGV[3] token   random, decimal: tells this install from another that is given the
--                 same generation after a loss
--
-- Returns the generation (4 bytes), or the epoch that stands in the way.

local epoch, taken, marks = redis.pcall('HGET', KEYS[1], 'epoch'), redis.pcall('HGET', KEYS[2], 'next'), redis.pcall('HLEN', KEYS[3])
local failure = failed(epoch) and epoch or failed(taken) and taken or failed(marks) and marks
if failure then
  return failure
end
if wrongType(epoch) then
  redis.call('UNLINK', KEYS[1])
  epoch = false
end
local there = whole(epoch) or 0 -- what is no epoch was never installed
if there >= tonumber(ARGV[2]) then
  return there
end
if wrongType(taken) then
  redis.call('UNLINK', KEYS[2])
  taken = false
elseif taken and not string.find(taken, '^%d%d?%d?%d?%d?%d?%d?%d?%d?%d?$') then
  redis.call('HDEL', KEYS[2], 'next')
  taken = false
end
if wrongType(marks) then
  redis.call('UNLINK', KEYS[3])
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if field ~= 'next' then
      redis.call('HDEL', KEYS[2], field)
    end
  end
end
-- A counter begins anywhere below 10^9: one that somebody deleted must not
-- come again to generations whose orders are still in marks.
local step = 1
if not taken then
  step = tonumber(string.sub(ARGV[3], -9)) + 1
end
local generation = struct.pack('>I4', redis.call('HINCRBY', KEYS[2], 'next', step))
redis.call('HSET', KEYS[2], 'stage:' .. ARGV[1] .. ':' .. ARGV[3],
  generation .. struct.pack('>I8I8', 0, tonumber(ARGV[2])))
return generation
