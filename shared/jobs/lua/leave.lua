-- Takes a job that waits out of its queue, or gives back the place of one that was under way, once. The difference
-- between the quantum that it was admitted with and its real number of leaves is booked on its tenant's deficit.
-- KEYS 1 ring   2 counts   3 held   4 deficit   5 under way   6 ends (see pace)   7 queue of its tenant
-- ARGV 1 now   2 ttl (s)   3 job id   4 tenant   5 quantum (leaves)   6 its leaves   7 ends that are kept
-- Returns 1 when it waited, 2 when it was under way, 0 when neither.
-- with whole
if redis.call('ZREM', KEYS[7], ARGV[3]) == 1 then
  add(KEYS[2], 'waiting', -1)
  if redis.call('ZCARD', KEYS[7]) == 0 then redis.call('LREM', KEYS[1], 0, ARGV[4]) end
  return 1
end
if redis.call('HDEL', KEYS[5], ARGV[3]) == 0 then return 0 end
add(KEYS[2], 'held', -1)
if add(KEYS[3], ARGV[4], -1) <= 0 then redis.call('HDEL', KEYS[3], ARGV[4]) end
local most = 10 * tonumber(ARGV[5])
local deficit = whole(KEYS[4], ARGV[4]) + tonumber(ARGV[5]) - tonumber(ARGV[6])
deficit = math.max(-most, math.min(0, deficit))
if deficit < 0 then
  redis.call('HSET', KEYS[4], ARGV[4], deficit)
  redis.call('EXPIRE', KEYS[4], ARGV[2])
else
  redis.call('HDEL', KEYS[4], ARGV[4])
end
redis.call('LPUSH', KEYS[6], ARGV[1])
redis.call('LTRIM', KEYS[6], 0, tonumber(ARGV[7]) - 1)
return 2
