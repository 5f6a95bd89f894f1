-- merging -> summarising, with the pool in its final order.
-- KEYS 1 job hash   2 pool   3 events stream   4 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 pool (blob)   5... chunks: name, blob
-- Returns 1, or 0 when the job is not merging (any more).
-- with emit
-- with keep_chunks
-- with states
if not may_become(redis.call('HGET', KEYS[1], 'state'), 'summarising') then return 0 end
keep_chunks(KEYS[4], 5, ARGV[2])
redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[2])
redis.call('HSET', KEYS[1], 'state', 'summarising', 'summarising_at', ARGV[1], 'updated_at', ARGV[1])
emit(KEYS[3], ARGV[3], 'type', 'state', 'state', 'summarising')
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('EXPIRE', KEYS[3], ARGV[2])
return 1
