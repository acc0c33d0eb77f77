#!lua
-- do_ask.lua, after numbered.lua: uses up the number, and returns the kept verdicts. A number
-- that is not among them never happened and never will.

redis.call('HSET', KEYS[2], ARGV[2], pack('>I8', number) .. kept)
return answer(APPLIED, kept)
