#!lua
-- do_ask.lua, after numbered.lua: the number is used up, and what is kept is
-- told. A number that is not among it never happened and never will. The caller
-- could not read what is no list of verdicts in the order of their numbers, and
-- would ask for ever.

local at, before = 1, 0
while at <= #kept do
  if #kept - at < 11 then
    return lost(answer)
  end
  local n, length = unpacked('>I8I4', kept, at)
  if n <= before or n > last then
    return lost(answer)
  end
  at, before = at + 12 + length, n
end
if at > #kept + 1 then
  return lost(answer)
end
redis.call('HSET', KEYS[2], ARGV[2], pack('>I8', number) .. kept)
return answer(APPLIED, kept)
