#!lua flags=no-writes
-- sound.lua, after damage.lua: looks whether what a shard is kept in can be used.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] lane    hash: process -> record
-- KEYS[3] group   hash: product -> live generation
-- KEYS[4] mark    hash: buyer -> mark
-- KEYS[5] queue   hash: the outbox's counter and figures
-- KEYS[6] open    sorted set: the product's entries that are not acknowledged
-- ARGV[1] product, decimal
--
-- Returns 0 if a key is of another type, or if the group does not know the
-- shard's generation, so that its marks would count for nobody; else 1.

local looks = {
  {'HGET', KEYS[1], 'generation'}, {'HGET', KEYS[3], ARGV[1]},
  {'HLEN', KEYS[2]}, {'HLEN', KEYS[4]}, {'HLEN', KEYS[5]}, {'ZCARD', KEYS[6]},
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
return saw[1] == saw[2] and 1 or 0
