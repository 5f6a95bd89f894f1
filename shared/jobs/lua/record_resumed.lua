-- Notes that a retry has taken over recorded leaves of the old job, once per planning.
-- KEYS 1 job hash   2 events stream
-- ARGV 1 ttl (s)   2 max events   3 id of the old job   4 recorded leaves taken over   5 leaves in all
-- Returns 1, or 0 when the job is gone.
-- with emit
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'taken_over', ARGV[4])
emit(KEYS[2], ARGV[2], 'type', 'taken_over', 'of', ARGV[3], 'leaves', ARGV[4],
  'total', ARGV[5])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
