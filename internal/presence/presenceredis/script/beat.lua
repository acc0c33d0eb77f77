#!lua flags=allow-oom
-- beat.lua signs a shop in until LIFE from now, forgets those whose time is
-- over, or further ahead than that (the server's clock was set back since), and
-- returns how many are signed in. It goes by the server's clock: the
-- shops' own may differ by more than a life. It may run when memory is short,
-- because it never takes more than a few bytes per shop.
--
-- KEYS[1] sorted set: shop -> until when it counts, in milliseconds
-- ARGV[1] shop
-- ARGV[2] LIFE in milliseconds

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = now + ARGV[2]
local function forget(from, to)
  for _, shop in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], from, to)) do
    redis.call('ZREM', KEYS[1], shop)
  end
end
forget('-inf', now)
forget('(' .. life, '+inf') -- nobody signs in for longer
redis.call('ZADD', KEYS[1], life, ARGV[1])
return redis.call('ZCARD', KEYS[1])
