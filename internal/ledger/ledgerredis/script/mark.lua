-- mark.lua, before scripts that read or write marks.
--
-- A mark is its orders one after the other, oldest first. Each has generation (4 bytes), SEQ of
-- its outbox entry (6), number (16), quantity (2), number of bytes after the next one (1),
-- length of the key (1), key, and fields of later versions, which a script keeps with the
-- order.
--
-- A buyer may have many orders, including dead ones whose keys stay known, and a batch may have
-- many such buyers. A step reads at most MOST_LOOKED orders of long marks, so that it ends
-- within milliseconds. Further items stay undecided, and are sent again. The first item is
-- always decided, and so is a buyer with a short mark, for example of two orders. So other
-- buyers never wait for those with long marks.

local SHORT, MOST_LOOKED = 192, 2048 -- bytes, orders

-- generations reads a group's hash. It returns the live generations, and those that a running
-- install is staging.
local function generations(group)
  local live, staged = {}, {}
  local all = redis.call('HGETALL', group)
  for i = 1, #all, 2 do
    if string.find(all[i], '^stage:') then
      staged[string.sub(all[i + 1], 1, 4)] = true
    elseif all[i] ~= 'next' then
      live[all[i + 1]] = true
    end
  end
  return live, staged
end

-- compacted returns the mark without the orders of dead generations. An invalid mark counts as
-- empty.
local function compacted(mark, live, staged)
  local parts, p = {}, 1
  while p <= #mark do
    local generation, size = string.sub(mark, p, p + 3), string.byte(mark, p + 28)
    if not size then
      return ''
    end
    local after = p + 30 + size
    if live[generation] or staged[generation] then
      parts[#parts + 1] = string.sub(mark, p, after - 1)
    end
    p = after
  end
  return p == #mark + 1 and table.concat(parts) or ''
end
