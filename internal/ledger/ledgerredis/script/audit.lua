#!lua flags=no-writes
-- audit.lua, after walk.lua: one step of reading the marks of a shard for one product.
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
-- orders; the product's generation; and the marks that the step found, each
-- after its buyer. With more marks than are read: nothing.

local shard = redis.call('HMGET', KEYS[1], 'generation', 'epoch', 'releases', 'marked', 'orders')
local reply = {'0', shard[2] or '0', shard[3] or '0', shard[4] or '0', shard[5] or '0', '', {}}
-- A generation that the group does not call live counts for nobody.
local generation = redis.call('HGET', KEYS[2], ARGV[1])
if not generation or generation ~= shard[1] then
  return reply
end
if redis.call('HLEN', KEYS[3]) > tonumber(ARGV[4]) then
  return {}
end
local step = walked(KEYS[3], ARGV[2], ARGV[3])
reply[1], reply[6], reply[7] = step[1], generation, step[2]
return reply
