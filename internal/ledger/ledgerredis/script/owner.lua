-- owner.lua stands before every script that reads or changes what a sale is
-- made of: in a bucket of another store nothing is touched. The mark is the
-- bucket's own, set by who installs there, so that it can be read in the same
-- step: the ledger's binding (bind.lua) lies in another slot of a Cluster.
--
-- KEYS[#KEYS] store  hash: "identity", of the store whose bucket this is
-- ARGV[#ARGV] identity of the caller's store, or '' for a ledger of anybody's

if ARGV[#ARGV] ~= '' then
  -- What cannot be read is no other store's.
  local owner = redis.pcall('HGET', KEYS[#KEYS], 'identity')
  if type(owner) == 'string' and owner ~= ARGV[#ARGV] then
    return {err = 'OTHERSTORE the bucket is of store ' .. owner}
  end
end
