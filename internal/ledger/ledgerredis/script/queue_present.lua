#!lua flags=allow-oom
-- Signs a living consumer in among the workers, and forgets those that have
-- been silent, or that signed in before the server's clock was set back: so
-- workers can be counted that hold nothing and have nothing to read.
--
-- KEYS 1 {b0}:workers  sorted set: consumer -> when it signed in, in ms
-- ARGV 1 consumer  2 silence in ms
-- Reply: 1
local workers, me, silence = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local signed = redis.pcall('ZADD', workers, now, me)
if type(signed) == 'table' and signed.err then
  if not string.find(signed.err, '^WRONGTYPE') then return signed end
  redis.call('UNLINK', workers) -- overwritten by hand: nothing is lost with it
  redis.call('ZADD', workers, now, me)
end

local function forget(from, to)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', workers, from, to)) do
    redis.call('ZREM', workers, name)
  end
end
forget('-inf', now - silence)
forget(now + silence, '+inf')
return 1
