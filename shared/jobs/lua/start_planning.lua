-- queued -> planning, for one claimant (a task id). The same claimant may claim again (redelivery), another one
-- when the claim is stale.
-- KEYS 1 job hash   2 events stream
-- ARGV 1 now   2 ttl (s)   3 max events   4 claimant   5 stale after (s)
-- Returns 1 when the claimant may plan, else 0.
-- with emit
-- with opened
-- with states
-- with while_open
local state, claim, since, created, deadline_s =
  unpack(redis.call('HMGET', KEYS[1], 'state', 'claim:planning', 'updated_at', 'created_at', 'deadline_s'))
if state == 'planning' then
  if claim and claim ~= ARGV[4] and tonumber(ARGV[1]) - (tonumber(since) or 0) < tonumber(ARGV[5]) then return 0 end
elseif not may_become(state, 'planning') then
  return 0
end
local first = state ~= 'planning' and {'planning_at', ARGV[1]} or {}
redis.call('HSET', KEYS[1], 'state', 'planning', 'claim:planning', ARGV[4], 'updated_at', ARGV[1], unpack(first))
if state ~= 'planning' then
  opened(KEYS[2], created)
  emit(KEYS[2], ARGV[3], 'type', 'state', 'state', 'planning')
end
for i = 1, 2 do redis.call('EXPIRE', KEYS[i], while_open(ARGV[2], deadline_s)) end
return 1
