#!lua flags=allow-oom
-- take.lua marks a bucket as the store's to which the ledger is bound.
--
-- KEYS[1] store  hash: "identity", of the store whose bucket this is
-- ARGV[1] identity

redis.call('HSET', KEYS[1], 'identity', ARGV[1])
return 1
