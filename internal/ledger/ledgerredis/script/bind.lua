#!lua flags=allow-oom
-- bind.lua, after damage.lua: binds the ledger to a store, unless it is bound. A
-- server that is full takes these few bytes as well.
--
-- KEYS[1] store  hash: "identity", of the store whose ledger this is
-- ARGV[1] identity
--
-- Returns the identity of the store to which it is bound.

local bound = redis.pcall('HGET', KEYS[1], 'identity')
if failed(bound) then
  return bound
end
if wrongType(bound) then
  redis.call('UNLINK', KEYS[1])
  bound = false
end
if not bound then
  redis.call('HSET', KEYS[1], 'identity', ARGV[1])
  bound = ARGV[1]
end
return bound
