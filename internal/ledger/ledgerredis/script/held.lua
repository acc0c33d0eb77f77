#!lua flags=no-writes
-- held.lua reads a buyer's mark, and the unacknowledged outbox entries of the buyer's live
-- orders of the product, newest first, a few at a time.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] mark    hash: buyer -> mark (see mark.lua)
-- KEYS[3] out     stream: the outbox
-- KEYS[4] open    sorted set: the product's unacknowledged entries
-- ARGV[1] buyer
-- ARGV[2] below   only entries with a lower SEQ are read
-- ARGV[3] most    entries that are read
--
-- Returns the product's generation, the mark, the lowest SEQ that was read (0 if there are no
-- more), and per entry: SEQ, head, limit, claims. An invalid mark has no entries.

local generation = redis.call('HGET', KEYS[1], 'generation')
local mark = generation and redis.call('HGET', KEYS[2], ARGV[1])
if not mark then
  return {}
end
local below, most, seqs, p = tonumber(ARGV[2]), tonumber(ARGV[3]), {}, 1
while p <= #mark do
  local high, low, size = string.byte(mark, p + 26, p + 28)
  if not size then
    break
  end
  local seq = struct.unpack('>I6', mark, p + 4)
  if high + low > 0 and seq > 0 and seq < below and string.sub(mark, p, p + 3) == generation then
    seqs[#seqs + 1] = seq
  end
  p = p + 30 + size
end
table.sort(seqs, function(a, b) return a > b end)

local reply, last, looked = {generation, mark, '0'}, 0, 0
for i = 1, #seqs do
  if seqs[i] ~= last then
    if looked == most then
      reply[3] = string.format('%.0f', last)
      break
    end
    last, looked = seqs[i], looked + 1
    local entry -- after a power cut the set may have ids with this number that are not in the stream
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], last, last)) do
      entry = entry or redis.call('XRANGE', KEYS[3], id, id)[1]
    end
    if entry then
      local of = {}
      for j = 1, #entry[2], 2 do of[entry[2][j]] = entry[2][j + 1] end
      reply[#reply + 1] = string.format('%.0f', last)
      reply[#reply + 1] = of.h or ''
      reply[#reply + 1] = of.l or ''
      reply[#reply + 1] = of.c or ''
    end
  end
end
return reply
