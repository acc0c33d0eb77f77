-- walk.lua stands before scripts that walk a hash, one step a call. Where a
-- cursor of HSCAN is, only the process knows that gave it: another, after a
-- restart or a move of the slot, has the hash in another order. So a cursor has
-- its process in front, and a step with another one's begins anew.

-- walked is a reply of HSCAN; the cursor is '0' before the first step and after
-- the last one.
local function walked(key, cursor, count)
  local process = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local of, at = string.match(cursor, '^(%x+):(%d+)$')
  local step = redis.call('HSCAN', key, of == process and at or '0', 'COUNT', count)
  if step[1] ~= '0' then
    step[1] = process .. ':' .. step[1]
  end
  return step
end
