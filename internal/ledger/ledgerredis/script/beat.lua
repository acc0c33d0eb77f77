#!lua
-- beat.lua: the heartbeats of one bucket's lanes. A beat takes no number, makes no record and
-- drops no verdict. A key of another type is a loss of its own product, and does not affect the
-- other beats.
--
-- KEYS[2i-1] shard, KEYS[2i] lane             of beat i
-- ARGV[3i-2] epoch, ARGV[3i-1] process, ARGV[3i] seen
--
-- Returns an outcome per beat, one byte each.

-- overwritten reports whether a reply is the error for a key of another type.
local function overwritten(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE')
end

local outcomes = {}
for i = 1, #KEYS / 2 do
  local shard = redis.pcall('HMGET', KEYS[2 * i - 1], 'epoch', 'open')
  if shard.err and not overwritten(shard) then
    return shard
  end
  if shard[1] ~= ARGV[3 * i - 2] then
    outcomes[i] = '\6'
  elseif shard[2] ~= '1' then
    outcomes[i] = '\5'
  else
    local record = redis.pcall('HGET', KEYS[2 * i], ARGV[3 * i - 1])
    local lost = overwritten(record)
    if not lost then
      local last = record and struct.unpack('>I8', record) or 0
      lost = tonumber(ARGV[3 * i]) > last
    end
    outcomes[i] = '\1'
    if lost then
      redis.call('HSET', KEYS[2 * i - 1], 'open', '0')
      outcomes[i] = '\4'
    end
  end
end
return table.concat(outcomes)
