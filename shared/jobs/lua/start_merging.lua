-- searching -> merging, when every node has ended (or by force, at the deadline), for one claimant: this script decides
-- whether the merge runs, whoever sent its message. The same claimant may claim again, another one when it is stale.
-- KEYS 1 job hash   2 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 claimant   5 stale after (s)   6 force (1|0)
-- Returns 1 when the claimant may merge, else 0.
-- with emit
-- with states
local state, open, claim, since =
  unpack(redis.call('HMGET', KEYS[1], 'state', 'open', 'claim:merging', 'updated_at'))
if state == 'merging' then
  if claim and claim ~= ARGV[4] and tonumber(ARGV[1]) - (tonumber(since) or 0) < tonumber(ARGV[5]) then return 0 end
elseif not may_become(state, 'merging') or ((tonumber(open) or 0) > 0 and ARGV[6] ~= '1') then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'merging', 'claim:merging', ARGV[4], 'updated_at', ARGV[1])
redis.call('HDEL', KEYS[1], 'claim:reranking')
if state ~= 'merging' then
  redis.call('HSET', KEYS[1], 'merging_at', ARGV[1])
  emit(KEYS[2], ARGV[3], 'type', 'state', 'state', 'merging')
end
return 1
