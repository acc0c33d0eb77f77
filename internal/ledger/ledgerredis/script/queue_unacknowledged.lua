#!lua flags=no-writes
-- Reads one product's unacknowledged entries in one bucket, some at a time, oldest first,
-- whichever consumer holds them.
--
-- KEYS 1 {bN}:out  2 {bN}:open:PRODUCT
-- ARGV 1 only entries with a higher SEQ are read  2 most entries to read
--      3 bytes of claims after which it stops
-- Reply: {SEQ of the last entry that was read, empty if there are no more,
--         then h, l and c of each entry}
local above, most, left = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. above, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
local reply = {''}
if #found == 2 * most then reply[1] = found[#found] end
for i = 1, #found, 2 do
  local id, seq = found[i], found[i + 1]
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry then
    local of = {}
    for j = 1, #entry[2], 2 do of[entry[2][j]] = entry[2][j + 1] end
    local claims = of.c or ''
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = of.h or '', of.l or '', claims
    left = left - #claims
    if left <= 0 and i + 1 < #found then
      reply[1] = seq
      break
    end
  end
end
return reply
