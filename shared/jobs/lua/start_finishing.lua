-- indexing -> finishing, when every item has ended (or by force, when a client has gone without closing its hand-over), for
-- one claimant. The same claimant may claim again, another one when it is stale.
-- KEYS 1 job hash   2 leaves hash   3 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 claimant   5 stale after (s)   6 force (1|0)
-- Returns 2 when the claimant may finish a job whose documents were all handed over, 1 when some were not, 0 when it may not.
-- with emit
-- with states
local state, open, claim, since = unpack(redis.call('HMGET', KEYS[1], 'state', 'open', 'claim:finishing', 'updated_at'))
if state == 'finishing' then
  if claim and claim ~= ARGV[4] and tonumber(ARGV[1]) - (tonumber(since) or 0) < tonumber(ARGV[5]) then return 0 end
elseif not may_become(state, 'finishing') or ((tonumber(open) or 0) > 0 and ARGV[6] ~= '1') then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'finishing', 'claim:finishing', ARGV[4], 'updated_at', ARGV[1])
if state ~= 'finishing' then
  redis.call('HSET', KEYS[1], 'finishing_at', ARGV[1])
  emit(KEYS[3], ARGV[3], 'type', 'state', 'state', 'finishing')
end
return redis.call('HGET', KEYS[2], '0') == 'open' and 1 or 2
