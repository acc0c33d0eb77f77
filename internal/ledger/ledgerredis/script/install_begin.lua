#!lua
-- install_begin.lua begins an install over a lower epoch. It takes the group's next generation,
-- under which marks are then staged. Several installs of one product may run at a time; the
-- highest epoch stays.
--
-- A key of another type is deleted here, and created again by the install. Group and mark
-- belong to all products of the group: if one of them was deleted, the group forgets the other
-- products, which must be recovered too.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] group   hash: product -> live generation; "next" -> the last one taken;
--                 "stage:PRODUCT:TOKEN" -> generation (4 bytes), marks staged (8),
--                 epoch (8)
-- KEYS[3] mark    hash: buyer -> mark
-- ARGV[1] product
-- ARGV[2] epoch
-- ARGV[3] token   random, decimal: distinguishes this install from another that
--                 gets the same generation after a loss
--
-- Returns the generation (4 bytes), or the epoch that forbids the install.

for i = 1, #KEYS do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'hash' and is ~= 'none' then
    redis.call('UNLINK', KEYS[i])
    if i == 3 then
      redis.call('UNLINK', KEYS[2])
    end
  end
end
local there = tonumber(string.match(redis.call('HGET', KEYS[1], 'epoch') or '', '^%d+$')) or 0 -- an invalid epoch counts as never installed
if there >= tonumber(ARGV[2]) then
  return there
end
-- A counter starts at a random number below 10^9. After a loss it must not repeat generations
-- whose orders are still in marks.
local step = 1
if not string.match(redis.call('HGET', KEYS[2], 'next') or '', '^%d+$') then
  redis.call('HDEL', KEYS[2], 'next')
  step = tonumber(string.sub(ARGV[3], -9)) + 1
end
local generation = struct.pack('>I4', redis.call('HINCRBY', KEYS[2], 'next', step))
redis.call('HSET', KEYS[2], 'stage:' .. ARGV[1] .. ':' .. ARGV[3],
  generation .. struct.pack('>I8I8', 0, tonumber(ARGV[2])))
return generation
