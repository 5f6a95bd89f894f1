-- Notes how the question is read, and the aggregator that follows from that; planning again notes it again.
-- KEYS 1 job hash   2 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 route as JSON   5 aggregator
-- Returns 1, or 0 when the job is not planning (any more).
-- with emit
if redis.call('HGET', KEYS[1], 'state') ~= 'planning' then return 0 end
redis.call('HSET', KEYS[1], 'route', ARGV[4], 'aggregator', ARGV[5], 'updated_at', ARGV[1])
emit(KEYS[2], ARGV[3], 'type', 'routed', 'route', ARGV[4])
return 1
