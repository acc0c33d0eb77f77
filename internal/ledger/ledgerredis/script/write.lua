-- write.lua, between numbered.lua and the body of a write: rule 5, and the end of rule 6.
--
-- A result is free units (8 bytes), number of verdicts (4), their codes (1 each), for a
-- REPEATED its order (16), for an OVER_LIMIT the number of held orders (2) and these, then 0,
-- or 1 and a transfer: peer (4), number (8), id (8), units (8).

if number ~= last + 1 then
  return refused(GAP)
end

-- applied stores the result and returns it. beyond is stored for a later ask only, because the
-- caller of the write has it already.
local function applied(result, beyond)
  local verdict = result .. (beyond or '')
  redis.call('HSET', KEYS[2], ARGV[2], pack('>I8', number) .. kept .. pack('>I8I4', number, #verdict) .. verdict)
  return answer(APPLIED, result)
end
