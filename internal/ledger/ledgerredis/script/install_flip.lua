#!lua
-- install_flip.lua makes a staged generation live, in the one step that also
-- replaces the shard's figures. The shard is closed. Records of numbered calls,
-- transfers and change verdicts end with their epoch.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] lane    hash: process -> record
-- KEYS[3] group   hash: see install_begin.lua
-- ARGV[1] product
-- ARGV[2] epoch
-- ARGV[3] staging what the group must say (see install_stage.lua)
-- ARGV[4] available, ARGV[5] units of the marks, ARGV[6] how many marks
-- ARGV[7] limit, ARGV[8] state
--
-- Returns the epoch that is there, which is the new one if it was installed,
-- and 1 if an older generation is dead now; or 0, 0 if the staging is not there.

local there = redis.call('HMGET', KEYS[1], 'epoch', 'generation')
if tonumber(there[1] or '0') >= tonumber(ARGV[2]) then
  return {there[1], 0}
end
if redis.call('HGET', KEYS[3], 'stage:' .. ARGV[1]) ~= ARGV[3] then
  return {'0', 0}
end
local generation, available = string.sub(ARGV[3], 1, 4), tonumber(ARGV[4])
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'open', '0', 'state', ARGV[8], 'limit', ARGV[7],
  'available', ARGV[4], 'allotted', available + tonumber(ARGV[5]), 'marked', ARGV[5], 'orders', ARGV[6],
  'sent', '0', 'received', '0', 'releases', '0', 'generation', generation)
redis.call('HSET', KEYS[3], ARGV[1], generation)
redis.call('HDEL', KEYS[3], 'stage:' .. ARGV[1])
return {ARGV[2], there[2] and 1 or 0}
