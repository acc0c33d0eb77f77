#!lua flags=no-writes
-- read.lua, after damage.lua: reads all of a shard's figures. A key that holds
-- something else holds no shard.
--
-- KEYS[1] shard   hash: the shard's figures

local figures = redis.pcall('HGETALL', KEYS[1])
if wrongType(figures) then
  return {}
end
return figures
