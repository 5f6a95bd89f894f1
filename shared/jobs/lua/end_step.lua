-- A worker has ended a piece of work. Another worker's mark is left alone.
-- KEYS 1 work hash
-- ARGV 1 item   2 mark
-- Returns 1, or 0 when the mark is another one's.
if redis.call('HGET', KEYS[1], 'busy:' .. ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], 'busy:' .. ARGV[1])
