#!lua flags=no-writes
-- Returns the highest witness that an acknowledgement of one bucket has carried, or false if it
-- is no longer in the stream: then the stream has lost it, which says nothing about the store.
--
-- KEYS 1 {bN}:out  2 {bN}:queue
-- Reply: the witness, or false
local highest = redis.call('HGET', KEYS[2], 'witness')
return highest and #redis.call('XRANGE', KEYS[1], highest, highest) > 0 and highest
