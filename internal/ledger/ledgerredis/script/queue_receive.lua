#!lua flags=allow-oom
-- Delivers entries of one bucket to a consumer: what was handed back first,
-- oldest first, then what was never delivered. A missing group is made again
-- from the beginning of the stream: entries that were acknowledged and not yet
-- trimmed may then come once more.
--
-- An entry of a version that the caller does not read is put, in the same step,
-- under a consumer that stands for that version, where only its readers look.
--
-- KEYS 1 {bN}:out
-- ARGV 1 group  2 consumer  3 the consumer that stands for "handed back"
--      4 most entries  5 the version of the format that the caller reads
-- Reply: per entry {id, fields}, those of other versions included
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
  -- An id that is no longer in the stream is dropped by XCLAIM itself.
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
