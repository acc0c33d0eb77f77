-- mark.lua stands before scripts that read or write marks.
--
-- A mark is its orders one after the other, oldest first, each as generation
-- (4 bytes), SEQ of its outbox entry (6), number (16), quantity (2), how many
-- bytes follow the next one (1), length of the key (1), key, and fields of later
-- versions, which a script keeps with the order.
--
-- A buyer may have many orders, dead ones among them whose keys stay known, and
-- a batch many such buyers. A step looks at so many orders of long marks and no
-- more, so that it ends within milliseconds; what is beyond it is left undecided,
-- and comes again. The first item is always decided, and so is everybody whose
-- mark is short, as that of two orders is: nobody waits for those who have much.

local SHORT, MOST_LOOKED = 192, 2048 -- bytes, orders

-- generations reads a group's hash: the set of those that count, and of those
-- that must not be dropped because an install is under way.
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

-- compacted is the mark without the orders of dead generations. What is no mark
-- is as good as none.
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
