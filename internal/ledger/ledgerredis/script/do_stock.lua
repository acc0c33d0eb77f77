#!lua
-- do_stock.lua, after numbered.lua and write.lua: a stock change, once per id and epoch. A
-- refusal is stored too, because a repeated call must be refused again.
--
-- ARGV[5] id of the change
-- ARGV[6] delta

local CHANGED, REFUSED = '\9', '\10'

local field, delta, free = 'change:' .. ARGV[5], tonumber(ARGV[6]), tonumber(shard[5])
local verdict = redis.call('HGET', KEYS[1], field)
if not verdict then
  verdict = CHANGED
  if free + delta < 0 then
    verdict = REFUSED
    redis.call('HSET', KEYS[1], field, verdict)
  else
    free = free + delta
    redis.call('HSET', KEYS[1], field, verdict, 'available', free, 'allotted', tonumber(shard[10]) + delta)
  end
end
return applied(pack('>I8I4', free, 1) .. verdict .. '\0')
