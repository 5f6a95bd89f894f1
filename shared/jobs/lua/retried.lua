-- Adds an event to an ended job: it is tried again as another job.
-- KEYS 1 job hash of the old job   2 its events stream
-- ARGV 1 ttl (s)   2 max events   3 id of the new job
-- Returns 1, or 0 when the old job is gone.
-- with emit
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
emit(KEYS[2], ARGV[2], 'type', 'retried', 'as', ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
