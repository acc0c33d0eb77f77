#!lua flags=allow-oom
-- Delivers entries of one bucket to a consumer: first returned ones, oldest first, then ones
-- that were never delivered. A missing group is created again at the beginning of the stream:
-- acknowledged entries that are not trimmed yet may then come once more.
--
-- In the same step an entry of a version that the caller does not read is assigned to a
-- consumer that stands for its version. Only readers of that version look there.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer of returned entries
--      4 most entries  5 the version of the format that the caller reads
-- Reply: per entry {id, fields}, including those of other versions
local out, group, me, returned, most = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if redis.call('EXISTS', out) == 0 then return {} end

local waiting = redis.pcall('XPENDING', out, group, '-', '+', most, 'version-' .. ARGV[5])
if waiting.err then
  if not string.find(waiting.err, '^NOGROUP') then return waiting end
  redis.call('XGROUP', 'CREATE', out, group, '0')
  waiting = {}
end
if #waiting < most then
  for _, row in ipairs(redis.call('XPENDING', out, group, '-', '+', most - #waiting, returned)) do
    waiting[#waiting + 1] = row
  end
end

local reply = {}
local function deliver(entry)
  local fields = entry[2]
  local version = fields[1] == 'h' and string.byte(fields[2])
  if version and version ~= tonumber(ARGV[5]) then
    redis.call('XCLAIM', out, group, 'version-' .. version, 0, entry[1], 'JUSTID')
  end
  reply[#reply + 1] = {entry[1], fields}
end

if #waiting > 0 then
  local ids = {}
  for i, row in ipairs(waiting) do ids[i] = row[1] end
  -- XCLAIM itself drops an id that is no longer in the stream.
  for _, entry in ipairs(redis.call('XCLAIM', out, group, me, 0, unpack(ids))) do
    deliver(entry)
  end
end
if #reply < most then
  local read = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', most - #reply, 'STREAMS', out, '>')
  if read then
    for _, entry in ipairs(read[1][2]) do
      deliver(entry)
    end
  end
end
return reply
