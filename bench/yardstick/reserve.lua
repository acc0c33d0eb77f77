-- The common design: one call per request.
-- KEYS[1] stock, KEYS[2] buyers (set), KEYS[3] orders (stream)
-- ARGV[1] buyer, ARGV[2] order number, ARGV[3] product, ARGV[4] quantity
-- Returns 0 sold, 1 sold out, 2 bought already.
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then
  return 2
end
local stock = tonumber(redis.call('GET', KEYS[1]))
if not stock or stock < tonumber(ARGV[4]) then
  return 1
end
redis.call('DECRBY', KEYS[1], ARGV[4])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('XADD', KEYS[3], '*', 'order_no', ARGV[2], 'user_id', ARGV[1], 'product_id', ARGV[3], 'quantity', ARGV[4])
return 0
