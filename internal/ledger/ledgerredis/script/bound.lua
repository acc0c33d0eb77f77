#!lua flags=no-writes
-- bound.lua reads to which store the ledger is bound, also from a server that
-- takes no writes.
--
-- KEYS[1] store  hash: "identity", of the store whose ledger this is
--
-- Returns its identity, or an empty text.

return redis.call('HGET', KEYS[1], 'identity') or ''
