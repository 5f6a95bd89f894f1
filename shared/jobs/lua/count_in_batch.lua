-- Counts a job's end in its batch, once per job: callers may repeat.
-- KEYS 1 batch hash   2 members hash (job id -> its outcome, or empty)   3 list of jobs without an answer
-- ARGV 1 ttl (s)   2 job id   3 outcome   4 most that the list keeps   5... reasons why it is degraded
-- Returns 1 when counted, 0 when counted before or not a member.
if redis.call('HGET', KEYS[2], ARGV[2]) ~= '' then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('HINCRBY', KEYS[1], 'open', -1)
redis.call('HINCRBY', KEYS[1], 'finished', 1)
redis.call('HINCRBY', KEYS[1], ARGV[3], 1)
for i = 5, #ARGV do redis.call('HINCRBY', KEYS[1], 'reason:' .. ARGV[i], 1) end
if ARGV[3] == 'failed' or ARGV[3] == 'expired' then
  redis.call('LPUSH', KEYS[3], ARGV[2])
  redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[4]) - 1)
  redis.call('EXPIRE', KEYS[3], ARGV[1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
