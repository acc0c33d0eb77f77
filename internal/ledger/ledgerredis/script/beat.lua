#!lua
-- beat.lua, after damage.lua: the heartbeats of one bucket's lanes. A beat takes
-- no number, makes no record and drops no verdict. A key that holds something
-- else is its own product's loss, and keeps no other beat from being told.
--
-- KEYS[2i-1] shard, KEYS[2i] lane             of beat i
-- ARGV[3i-2] epoch, ARGV[3i-1] process, ARGV[3i] seen
--
-- Returns an outcome per beat, one byte each.

-- heard is the last number of a record; nothing, if it is none.
local function heard(record)
  if not record then
    return 0
  end
  local last = type(record) == 'string' and #record >= 8 and struct.unpack('>I8', record)
  return last and last < 2 ^ 53 and last
end

local outcomes = {}
for i = 1, #KEYS / 2 do
  local shard = redis.pcall('HMGET', KEYS[2 * i - 1], 'epoch', 'open')
  if failed(shard) then
    return shard
  end
  if shard[1] ~= ARGV[3 * i - 2] then
    outcomes[i] = '\6'
  elseif shard[2] ~= '1' then
    outcomes[i] = '\5'
  else
    local record = redis.pcall('HGET', KEYS[2 * i], ARGV[3 * i - 1])
    if failed(record) then
      return record
    end
    local last = heard(record)
    outcomes[i] = '\1'
    if not last or tonumber(ARGV[3 * i]) > last then
      redis.call('HSET', KEYS[2 * i - 1], 'open', '0')
      outcomes[i] = '\4'
    end
  end
end
return table.concat(outcomes)
