-- A job waits no more, or is under way no more: its place is given back, once. What it had of leaves beyond, or below, the
-- quantum that it was let in with is put on its tenant's account.
-- KEYS 1 ring   2 counts   3 held   4 deficit   5 under way   6 ends   7 line of its tenant
-- ARGV 1 now   2 ttl (s)   3 job id   4 tenant   5 quantum (leaves)   6 leaves that it had   7 ends that are kept
-- Returns 1 when it waited, 2 when it was under way, 0 when neither.
if redis.call('ZREM', KEYS[7], ARGV[3]) == 1 then
  redis.call('HINCRBY', KEYS[2], 'waiting', -1)
  if redis.call('ZCARD', KEYS[7]) == 0 then redis.call('LREM', KEYS[1], 0, ARGV[4]) end
  return 1
end
if redis.call('HDEL', KEYS[5], ARGV[3]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[2], 'held', -1)
if redis.call('HINCRBY', KEYS[3], ARGV[4], -1) <= 0 then redis.call('HDEL', KEYS[3], ARGV[4]) end
local most = 10 * tonumber(ARGV[5])
local owes = tonumber(redis.call('HGET', KEYS[4], ARGV[4]) or 0) + tonumber(ARGV[5]) - tonumber(ARGV[6])
owes = math.max(-most, math.min(0, owes))
if owes < 0 then redis.call('HSET', KEYS[4], ARGV[4], owes) else redis.call('HDEL', KEYS[4], ARGV[4]) end
redis.call('LPUSH', KEYS[6], ARGV[1])
redis.call('LTRIM', KEYS[6], 0, tonumber(ARGV[7]) - 1)
for i = 1, 6 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return 2
