#!lua
-- do_ask.lua, after numbered.lua: the number is used up, and what is kept is
-- told. A number that is not among it never happened and never will. The caller
-- could not read what is no list of verdicts in the order of their numbers, and
-- would ask for ever.

local at, before = 1, 0
while at <= #kept do
  local beyond, n = after(at)
  if not beyond or n <= before then
    return lost(answer)
  end
  at, before = beyond, n
end
redis.call('HSET', KEYS[2], ARGV[2], pack('>I8', number) .. kept)
return answer(APPLIED, kept)
