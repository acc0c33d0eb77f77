#!lua
-- do_ask.lua, after numbered.lua: the number is used up, and what is kept is
-- told. A number that is not among it never happened and never will.

redis.call('HSET', KEYS[2], ARGV[2], pack('>I8', number) .. kept)
return answer(APPLIED, kept)
