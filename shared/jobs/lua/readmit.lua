-- Puts a queued job that is in no queue and not under way (the keys were lost) back at its old place. A job that runs
-- but is not counted as under way is counted again.
-- KEYS 1 ring   2 counts   3 held   4 under way   5 queue of its tenant
-- ARGV 1 ttl (s)   2 job id   3 tenant   4 lane   5 created at   6 1: it runs
-- Returns 1 when it was missing, else 0.
-- with whole
if redis.call('ZSCORE', KEYS[5], ARGV[2]) or redis.call('HEXISTS', KEYS[4], ARGV[2]) == 1 then return 0 end
if ARGV[6] == '1' then
  redis.call('HSET', KEYS[4], ARGV[2], ARGV[4] .. ' ' .. ARGV[3])
  add(KEYS[3], ARGV[3], 1)
  add(KEYS[2], 'held', 1)
else
  if redis.call('ZCARD', KEYS[5]) == 0 then
    redis.call('LREM', KEYS[1], 0, ARGV[3])
    redis.call('RPUSH', KEYS[1], ARGV[3])
  end
  redis.call('ZADD', KEYS[5], ARGV[5], ARGV[2])
  add(KEYS[2], 'waiting', 1)
end
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[1]) end
return 1
