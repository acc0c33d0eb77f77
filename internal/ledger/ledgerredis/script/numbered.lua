-- numbered.lua, before the body of every numbered call: protocol 1, rules 1 to 4. The body uses
-- number, last and kept.
--
-- KEYS[1] shard   hash: the shard's figures
-- KEYS[2] lane    hash: process -> record
-- ARGV[1] epoch
-- ARGV[2] process (16 bytes)
-- ARGV[3] number  (below 2^53)
-- ARGV[4] seen
--
-- A record is last (8 bytes) and the kept verdicts in the order of their numbers, each as
-- number (8), length (4) and result. A reply is outcome (1), epoch (8), and for APPLIED the
-- result, or all kept verdicts.

local APPLIED, STALE, GAP, LOST, CLOSED, EPOCH = 1, 2, 3, 4, 5, 6
local pack, unpacked, sub, byte = struct.pack, struct.unpack, string.sub, string.byte

local shard = redis.call('HMGET', KEYS[1], 'epoch', 'open', 'state', 'limit', 'available', 'marked', 'orders',
  'releases', 'generation', 'allotted', 'sent', 'received')

local epoch = tonumber(ARGV[1])
local function answer(outcome, rest)
  return pack('>BI8', outcome, epoch) .. (rest or '')
end

if shard[1] ~= ARGV[1] then
  epoch = tonumber(shard[1] or '') or 0
  return answer(EPOCH)
end
if shard[2] ~= '1' then
  return answer(CLOSED)
end

-- lost closes the shard, after a step found a state that is impossible unless writes were lost.
local function lost(told)
  redis.call('HSET', KEYS[1], 'open', '0')
  return told(LOST)
end

local number, seen, last, kept = tonumber(ARGV[3]), tonumber(ARGV[4]), 0, ''
local record = redis.call('HGET', KEYS[2], ARGV[2])
if record then
  last, kept = unpacked('>I8', record), sub(record, 9)
end
if seen > last then
  return lost(answer)
end

local heard, size = 1, #kept
while heard <= size do
  local n, length = unpacked('>I8I4', kept, heard)
  if n > seen then
    break
  end
  heard = heard + 12 + length
end
kept = sub(kept, heard)

-- refused answers a call that only drops received verdicts.
local function refused(outcome)
  if heard > 1 then
    redis.call('HSET', KEYS[2], ARGV[2], pack('>I8', last) .. kept)
  end
  return answer(outcome)
end

if number <= last then
  return refused(STALE)
end
