-- summarising -> done, with the answer, which holds all that the keys of the work held.
-- KEYS 1 job hash   2 answer   3 events stream   4... keys of the work
-- ARGV 1 now   2 ttl (s)   3 max events   4 answer (blob)   5 partial (1|0)   6 verdicts (codes, by commas)
-- Returns 1, or 0 when the job is not summarising (any more).
-- with counted
-- with emit
-- with expire_kept
-- with shrink
if not may_become(redis.call('HGET', KEYS[1], 'state'), 'done') then return 0 end
redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[2])
redis.call('HSET', KEYS[1], 'state', 'done', 'partial', ARGV[5], 'verdicts', ARGV[6], 'finished_at', ARGV[1], 'updated_at', ARGV[1])
redis.call('DEL', unpack(KEYS, 4))
count_end(KEYS[1], ARGV[2])
emit(KEYS[3], ARGV[3], 'type', 'state', 'state', 'done', 'partial', ARGV[5],
  'degraded', redis.call('HGET', KEYS[1], 'degraded') or '')
shrink(KEYS[3])
expire_kept(KEYS[1], ARGV[2])
return 1
