#!lua flags=allow-oom
-- Gives a consumer's sign of life, and returns the signs of all: who sees one
-- that does not change for long enough, by its own clock, takes that consumer
-- for dead. The sign is the server's time, so that consumers can be counted that
-- hold nothing; but nobody who judges whether one lives reads it as a time.
--
-- Consumers that left no sign for long by the server's clock are forgotten, and
-- those that left one before the clock was set back.
--
-- KEYS 1 {b0}:workers  2 {b0}:relays  sorted sets: consumer -> its sign
-- ARGV 1 which of the two the consumer belongs to  2 consumer
--      3 after how many ms a silent one is forgotten
-- Reply: {consumer, sign, consumer, sign, ...} of both sets
local mine, me, forget = KEYS[tonumber(ARGV[1])], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function forgetFrom(set, from, to)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', set, from, to)) do redis.call('ZREM', set, name) end
end

local reply = {}
for i = 1, 2 do
  local set = KEYS[i]
  local size = redis.pcall('ZCARD', set)
  if type(size) == 'table' and size.err then
    if not string.find(size.err, 'WRONGTYPE') then return size end
    redis.call('UNLINK', set) -- overwritten by hand: nothing is lost with it
  end
  if set == mine then redis.call('ZADD', set, now, me) end
  forgetFrom(set, '-inf', now - forget)
  forgetFrom(set, now + forget, '+inf')
  for _, part in ipairs(redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')) do reply[#reply + 1] = part end
end
return reply
