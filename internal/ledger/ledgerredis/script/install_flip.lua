#!lua
-- install_flip.lua, after instruction.lua: makes a staged generation live and replaces the
-- shard's figures, in one step. The shard is closed. Records of numbered calls, transfers and
-- change verdicts end with their epoch. An instruction stays, and the state is not set below
-- it.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] lane    hash: process -> record
-- KEYS[3] group   hash: see install_begin.lua
-- ARGV[1] product
-- ARGV[2] epoch
-- ARGV[3] field, ARGV[4] staging: the value that the group must have (see install_stage.lua)
-- ARGV[5] available, ARGV[6] units of the marks, ARGV[7] live orders among them
-- ARGV[8] limit, ARGV[9] state
--
-- Returns the shard's epoch, which is the new one if it was installed, and 1 if other
-- generations are dead now; or 0, 0 if the staging is missing.

local there = redis.call('HMGET', KEYS[1], 'epoch', 'generation', 'instruction')
if (tonumber(string.match(there[1] or '', '^%d+$')) or 0) >= tonumber(ARGV[2]) then
  return {there[1], 0}
end
if redis.call('HGET', KEYS[3], ARGV[3]) ~= ARGV[4] then
  return {'0', 0}
end
local generation, available = string.sub(ARGV[4], 1, 4), tonumber(ARGV[5])
local figures = {'epoch', ARGV[2], 'open', '0', 'state', math.max(tonumber(ARGV[9]), least(there[3])), 'limit', ARGV[8],
  'available', ARGV[5], 'allotted', available + tonumber(ARGV[6]), 'marked', ARGV[6], 'orders', ARGV[7],
  'sent', '0', 'received', '0', 'releases', '0', 'generation', generation}
local fresh = {instruction = least(there[3]) > 0}
for i = 1, #figures, 2 do
  fresh[figures[i]] = true
end
-- The shard's key is never deleted and created again: while a slot moves to another node, a
-- script that reads a missing key ends half-way.
redis.call('HSET', KEYS[1], unpack(figures))
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not fresh[field] then
    redis.call('HDEL', KEYS[1], field)
  end
end
local before = there[2] or redis.call('HGET', KEYS[3], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], generation)
redis.call('UNLINK', KEYS[2])

-- Other stagings of this product are late or abandoned, so they are garbage.
local waste, mine = before and 1 or 0, 'stage:' .. ARGV[1] .. ':'
local group = redis.call('HGETALL', KEYS[3])
for i = 1, #group, 2 do
  local staging = group[i + 1]
  if string.sub(group[i], 1, #mine) == mine and (#staging ~= 20 or struct.unpack('>I8', staging, 13) <= tonumber(ARGV[2])) then
    redis.call('HDEL', KEYS[3], group[i])
    if group[i] ~= ARGV[3] then
      waste = 1
    end
  end
end
return {ARGV[2], waste}
