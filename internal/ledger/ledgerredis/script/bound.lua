#!lua flags=no-writes
-- bound.lua, after damage.lua: reads to which store the ledger is bound, also
-- from a server that takes no writes.
--
-- KEYS[1] store  hash: "identity", of the store whose ledger this is
--
-- Returns its identity, or an empty text.

local bound = redis.pcall('HGET', KEYS[1], 'identity')
if wrongType(bound) then
  return ''
end
return bound or ''
