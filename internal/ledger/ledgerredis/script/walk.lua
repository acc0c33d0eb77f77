-- walk.lua, before scripts that walk a hash, one step per call. A cursor of HSCAN is valid only
-- for the process that gave it: after a restart or a move of the slot, another process has the
-- hash in another order. So a cursor contains its process, and a step with the cursor of
-- another process starts again.

-- walked runs HSCAN. The cursor is '0' before the first step and after the last one.
local function walked(key, cursor, count)
  local process = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local of, at = string.match(cursor, '^(%x+):(%d+)$')
  local step = redis.call('HSCAN', key, of == process and at or '0', 'COUNT', count)
  if step[1] ~= '0' then
    step[1] = process .. ':' .. step[1]
  end
  return step
end
