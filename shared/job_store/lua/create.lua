-- (nothing) -> queued. Does nothing when the job exists, so a repeated submit is harmless.
-- KEYS 1 job hash   2 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4... field, value pairs of the job hash
-- Returns 1 when created, 0 when it was there already.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('HSET', KEYS[1], 'state', 'queued', 'created_at', ARGV[1], 'updated_at', ARGV[1])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'type', 'state', 'state', 'queued')
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return 1
