#!lua flags=allow-oom
-- Sends a consumer's heartbeat, and returns the heartbeats of all. A reader that sees an
-- unchanged heartbeat for long enough, by its own clock, considers that consumer dead. The
-- heartbeat is the server's time, so that consumers without entries can be counted. But for
-- deciding whether a consumer lives, it is not used as a time.
--
-- Consumers whose last heartbeat is old by the server's clock are removed, and also those with
-- one from before the clock was set back.
--
-- KEYS 1 {b0}:workers  2 {b0}:relays  sorted sets: consumer -> its heartbeat
-- ARGV 1 index of the consumer's set in KEYS  2 consumer
--      3 a consumer that is silent for so many ms is removed
-- Reply: {consumer, heartbeat, consumer, heartbeat, ...} of both sets
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
    redis.call('UNLINK', set) -- overwritten by hand; its deletion loses nothing
  end
  if set == mine then redis.call('ZADD', set, now, me) end
  forgetFrom(set, '-inf', now - forget)
  forgetFrom(set, now + forget, '+inf')
  for _, part in ipairs(redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')) do reply[#reply + 1] = part end
end
return reply
