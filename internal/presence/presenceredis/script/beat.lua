#!lua flags=allow-oom
-- beat.lua signs a shop in until LIFE from now, forgets those whose time is
-- over, and returns how many are signed in. It goes by the server's clock: the
-- shops' own may differ by more than a life. It may run when memory is short,
-- because it never takes more than a few bytes per shop.
--
-- KEYS[1] sorted set: shop -> until when it counts, in milliseconds
-- ARGV[1] shop
-- ARGV[2] LIFE in milliseconds

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)
for _, shop in ipairs(over) do
  redis.call('ZREM', KEYS[1], shop)
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return redis.call('ZCARD', KEYS[1])
