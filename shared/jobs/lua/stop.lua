-- Any state that is not terminal -> failed, cancelled or expired, with the reason.
-- KEYS 1 job hash   2 candidates hash   3 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 new state   5 reason   6 1: also from a state that is missing or unknown here,
--      if the job has no time of its end (a newer release may know more ends)
-- Returns 1, or 0 when the job has ended before or is unknown.
-- with counted
-- with emit
-- with expire_kept
-- with opened
-- with shrink
-- with totals
local found = redis.call('HMGET', KEYS[1], 'state', 'created_at', 'finished_at', 'partial', 'degraded', 'batch_id',
  'tenant', 'webhook', unpack(OF_ENDED))
local state, created, finished, partial, degraded, batch, tenant, webhook = unpack(found, 1, 8)
local unknown = not TRANSITIONS[state or ''] and not finished and redis.call('EXISTS', KEYS[1]) == 1
if not may_become(state or '', ARGV[4]) and not (unknown and ARGV[6] == '1') then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[4], 'error', ARGV[5], 'finished_at', ARGV[1], 'updated_at', ARGV[1])
redis.call('DEL', KEYS[2])
local outcome = outcome_of(ARGV[4], partial, degraded)
count_end(KEYS[1], ARGV[2], batch, outcome, degraded, nil, tenant, webhook)
pcall(to_totals, {unpack(found, 9)}, ARGV[1], ARGV[2], outcome, degraded)
local waited = redis.call('EXISTS', KEYS[3]) == 0
opened(KEYS[3], created)
emit(KEYS[3], ARGV[3], 'type', 'state', 'state', ARGV[4], 'error', ARGV[5])
if waited then shrink(KEYS[3]) end
expire_kept(KEYS[1], ARGV[2], {'job', 'nodes', 'leaves', 'work', 'results', 'chunks', 'warnings', 'events'})
return 1
