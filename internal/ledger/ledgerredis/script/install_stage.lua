#!lua
-- install_stage.lua, after mark.lua: writes a chunk of marks, which are invisible until their
-- generation is live.
--
-- KEYS[1] group   hash: see install_begin.lua
-- KEYS[2] mark    hash: buyer -> mark
-- ARGV[1] field   of the staging in the group
-- ARGV[2] staging generation (4 bytes), marks staged before (8), epoch (8). If the
--                 group has another value, a chunk was lost, or an install of this
--                 or a higher epoch came first
-- ARGV[3] marks   one after the other: the part of a mark from the number on (see
--                 mark.lua), length of the buyer (1), buyer. Quantity 0 means a
--                 dead order that is kept for its key
--
-- Returns 1 if the chunk is written, now or before, else 0.

local marks, orders, buyers = ARGV[3], {}, {}
local p = 1
while p <= #marks do
  local at = p + 20 + string.byte(marks, p + 18)
  local buyer = string.byte(marks, at)
  orders[#orders + 1] = string.sub(marks, p, at - 1)
  buyers[#buyers + 1] = string.sub(marks, at + 1, at + buyer)
  p = at + 1 + buyer
end

local count = struct.unpack('>I8', ARGV[2], 5) + #buyers
local after = string.sub(ARGV[2], 1, 4) .. struct.pack('>I8', count) .. string.sub(ARGV[2], 13)
local said = redis.call('HGET', KEYS[1], ARGV[1])
if said ~= ARGV[2] then
  return said == after and 1 or 0
end

local live, staged = generations(KEYS[1])
local stamp = string.sub(ARGV[2], 1, 4) .. '\0\0\0\0\0\0'
local there, changed, fields = redis.call('HMGET', KEYS[2], unpack(buyers)), {}, {}
for i = 1, #buyers do
  local parts = changed[buyers[i]]
  if not parts then
    parts = {there[i] and compacted(there[i], live, staged) or ''}
    changed[buyers[i]] = parts
  end
  parts[#parts + 1] = stamp .. orders[i]
end
for buyer, parts in pairs(changed) do
  fields[#fields + 1] = buyer
  fields[#fields + 1] = table.concat(parts)
end
redis.call('HSET', KEYS[2], unpack(fields))
redis.call('HSET', KEYS[1], ARGV[1], after)
return 1
