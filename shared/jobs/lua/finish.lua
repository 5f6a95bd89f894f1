-- summarising -> done, with the answer, which holds all that the keys of the work held; finishing -> done, without one. Its place goes to the next one; where
-- that fails, as it does where those keys are damaged, the reaper gives it back.
-- KEYS 1 job hash   2 answer   3 events stream   4 active   5-11 as in `give_back`   12... keys of the work
-- ARGV 1 now   2 ttl (s)   3 max events   4 answer (blob) or ''   5 partial (1|0)   6 job id   7 tenant   8 quantum (leaves)
--      9 ends that are kept   10 verdicts (codes, by commas)   11 item that its worker is at no more ('': none)
--      12 manifest (blob) or ''
-- Returns 1, or 0 when the job is in another state (by now).
-- with counted
-- with emit
-- with expire_kept
-- with give_back
-- with shrink
-- with totals
local found = redis.call('HMGET', KEYS[1], 'state', 'degraded', 'batch_id', 'leaves_total', 'tenant', 'webhook',
  unpack(OF_ENDED))
local state, degraded, batch, leaves, tenant, webhook = unpack(found, 1, 6)
if not may_become(state, 'done') then return 0 end
if ARGV[4] ~= '' then redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[2]) end
if ARGV[12] ~= '' then redis.call('SET', string.gsub(KEYS[1], 'job$', 'manifest'), ARGV[12], 'EX', ARGV[2]) end
redis.call('HSET', KEYS[1], 'state', 'done', 'partial', ARGV[5], 'verdicts', ARGV[10], 'finished_at', ARGV[1],
  'updated_at', ARGV[1])
redis.call('DEL', unpack(KEYS, 12))
local outcome = outcome_of('done', ARGV[5], degraded)
count_end(KEYS[1], ARGV[2], batch, outcome, degraded, ARGV[10], tenant, webhook)
pcall(to_totals, {unpack(found, 7)}, ARGV[1], ARGV[2], outcome, degraded)
emit(KEYS[3], ARGV[3], 'type', 'state', 'state', 'done', 'partial', ARGV[5], 'degraded', degraded or '')
if ARGV[11] ~= '' then redis.call('HDEL', string.gsub(KEYS[1], 'job$', 'work'), 'busy:' .. ARGV[11]) end
shrink(KEYS[3])
expire_kept(KEYS[1], ARGV[2], {'job', 'events'})  -- the others may live for its own time longer
local place = {unpack(KEYS, 5, 11)}
if pcall(give_back, place, ARGV[1], ARGV[2], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(leaves) or 0,
  tonumber(ARGV[9])) then redis.pcall('ZREM', KEYS[4], ARGV[6]) end
return 1
