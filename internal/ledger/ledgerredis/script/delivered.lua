-- delivered.lua, before scripts that check whether a worker will get an entry.

-- lastDelivered returns the last id that the group has read from the stream, or nil if there is
-- no such group. A missing group is created again at the beginning of the stream.
local function lastDelivered(out, group)
  local groups = redis.pcall('XINFO', 'GROUPS', out)
  for _, row in ipairs(groups.err and {} or groups) do
    local is = {}
    for i = 1, #row, 2 do is[row[i]] = row[i + 1] end
    if is.name == group then return is['last-delivered-id'] end
  end
end

-- passed reports whether no worker will get an entry of the stream: the group has read past it,
-- and no consumer holds it. A power cut in the middle of a script can leave such entries before
-- later ones.
local function passed(out, group, delivered, id)
  return #redis.call('XRANGE', out, '(' .. delivered, id, 'COUNT', 1) == 0
    and #redis.call('XPENDING', out, group, id, id, 1) == 0
end
