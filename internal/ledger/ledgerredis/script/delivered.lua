-- delivered.lua, before scripts that look whether an entry comes to a worker.

-- lastDelivered is up to where the stream was delivered to a group; nil without
-- that group, which is then made again from the beginning.
local function lastDelivered(out, group)
  local groups = redis.pcall('XINFO', 'GROUPS', out)
  for _, row in ipairs(groups.err and {} or groups) do
    local is = {}
    for i = 1, #row, 2 do is[row[i]] = row[i + 1] end
    if is.name == group then return is['last-delivered-id'] end
  end
end

-- passed reports whether nobody is given an entry of the stream any more: it
-- stands where all was delivered, and no consumer holds it. Halves of scripts that
-- a power cut has torn leave such entries, in front of later ones.
local function passed(out, group, delivered, id)
  return #redis.call('XRANGE', out, '(' .. delivered, id, 'COUNT', 1) == 0
    and #redis.call('XPENDING', out, group, id, id, 1) == 0
end
