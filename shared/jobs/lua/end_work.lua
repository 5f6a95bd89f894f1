-- A worker has ended an item. Another worker's attempt is left as it is.
-- KEYS 1 work hash
-- ARGV 1 item   2 attempt
-- Returns 1, or 0 when the attempt is another worker's.
if redis.call('HGET', KEYS[1], 'busy:' .. ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], 'busy:' .. ARGV[1])
