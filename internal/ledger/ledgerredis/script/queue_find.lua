#!lua flags=no-writes
-- After id.lua: looks for an order number in the claims of one product's entries
-- in one bucket that are not acknowledged, some entries at a time.
--
-- KEYS 1 {bN}:out  2 {bN}:open:PRODUCT
-- ARGV 1 order number, 16 bytes  2 only entries with a higher SEQ are looked at
--      3 most entries to look at  4 bytes of claims after which it looks no further
-- Reply: {entries that were looked at, SEQ of the last of them}, SEQ empty when
--        there are no more; with h, l and c behind them of the last, if the number's
--        bytes are somewhere in its claims
local most, left = tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, most)
local count = #found / 2
for i = 1, count do
  local id, seq = found[2 * i - 1], found[2 * i]
  local entry = isID(id) and redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry then
    local of = {}
    for j = 1, #entry[2], 2 do of[entry[2][j]] = entry[2][j + 1] end
    local claims = of.c or ''
    if string.find(claims, ARGV[1], 1, true) then
      return {i, seq, of.h or '', of.l or '', claims}
    end
    left = left - #claims
    if left <= 0 then return {i, seq} end
  end
end
return {count, count == most and found[2 * count] or ''}
