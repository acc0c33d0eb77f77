#!lua flags=allow-oom
-- trial.lua runs every command that the scripts use, on its own keys. Otherwise a missing right
-- would end a script in the middle, between its writes.
--
-- KEYS[1] a hash, KEYS[2] a stream, KEYS[3] a sorted set; all deleted in the end
-- ARGV[1] the channel of notes, which gets no message; '' for none
--
-- Returns the refusals: a text per command, beginning with its name.

local hash, stream, set = KEYS[1], KEYS[2], KEYS[3]
local refused = {}

local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    local name = select(1, ...)
    if name == 'XINFO' or name == 'XGROUP' then
      name = name .. ' ' .. select(2, ...)
    end
    refused[#refused + 1] = name .. ': ' .. reply.err
  end
end

try('UNLINK', hash, stream, set)
try('TIME')
try('INFO', 'server')
try('EXISTS', hash)
try('TYPE', hash)

try('HSET', hash, 'a', '1', 'b', '2')
try('HINCRBY', hash, 'a', 1)
try('HGET', hash, 'a')
try('HMGET', hash, 'a', 'b')
try('HGETALL', hash)
try('HKEYS', hash)
try('HLEN', hash)
try('HSTRLEN', hash, 'a')
try('HSCAN', hash, '0', 'COUNT', 10)
try('HDEL', hash, 'a', 'b')

try('ZADD', set, 1, 'a')
try('ZCARD', set)
try('ZCOUNT', set, 1, 1)
try('ZRANGE', set, 0, 0)
try('ZRANGEBYSCORE', set, 1, 1)
try('ZREM', set, 'a')

try('XADD', stream, '1-1', 'a', 'b')
try('XGROUP', 'CREATE', stream, 'g', '0')
try('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 1, 'STREAMS', stream, '>')
try('XPENDING', stream, 'g')
try('XCLAIM', stream, 'g', 'd', 0, '1-1', 'JUSTID')
try('XINFO', 'STREAM', stream)
try('XINFO', 'GROUPS', stream)
try('XINFO', 'CONSUMERS', stream, 'g')
try('XGROUP', 'DELCONSUMER', stream, 'g', 'c')
try('XACK', stream, 'g', '1-1')
try('XLEN', stream)
try('XRANGE', stream, '-', '+', 'COUNT', 1)
try('XTRIM', stream, 'MINID', '~', '2', 'LIMIT', 1)

if ARGV[1] ~= '' then try('PUBLISH', ARGV[1], '') end

try('UNLINK', hash, stream, set)
return refused
