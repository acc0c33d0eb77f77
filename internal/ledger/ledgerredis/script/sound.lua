#!lua flags=no-writes
-- sound.lua, after damage.lua, whole.lua and id.lua: looks whether what a
-- shard is kept in can be used.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] lane    hash: process -> record
-- KEYS[3] group   hash: product -> live generation
-- KEYS[4] mark    hash: buyer -> mark
-- KEYS[5] queue   hash: the outbox's counter and figures
-- KEYS[6] open    sorted set: the product's entries that are not acknowledged
-- ARGV[1] product, decimal
--
-- Returns 0 if a key is of another type; if the group does not know the shard's
-- generation, so that its marks would count for nobody; if the shard does not
-- balance, as every step leaves it; or if the oldest entry that is waited for is
-- none; else 1.

local looks = {
  {'HMGET', KEYS[1], 'generation', 'epoch', 'available', 'marked', 'allotted', 'received', 'sent'},
  {'HGET', KEYS[3], ARGV[1]},
  {'HLEN', KEYS[2]}, {'HLEN', KEYS[4]}, {'HLEN', KEYS[5]}, {'ZRANGE', KEYS[6], 0, 0},
}
local saw = {}
for i, look in ipairs(looks) do
  saw[i] = redis.pcall(unpack(look))
  if wrongType(saw[i]) then
    return 0
  elseif failed(saw[i]) then
    return saw[i]
  end
end
local generation, epoch, available, marked, allotted, received, sent = unpack(saw[1])
if generation ~= saw[2] then
  return 0
end
if saw[6][1] and not isID(saw[6][1]) then
  return 0
end
if not epoch then
  return 1
end
available, marked, received, sent = whole(available), whole(marked), whole(received), whole(sent)
-- Allotted alone may be below 0: units that came from other shards can be taken
-- out of the sale again.
allotted = tonumber(allotted or '')
if not (available and marked and allotted and received and sent) then
  return 0
end
return available + marked == allotted + received - sent and 1 or 0
