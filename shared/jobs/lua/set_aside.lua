-- Notes that what is stored of a job cannot be read. Of too many the oldest are forgotten.
-- KEYS 1 sorted set: job id -> since when   2 hash: job id -> why, as JSON   3 how many jobs have been set aside so far
-- ARGV 1 now   2 ttl (s)   3 job id   4 why, as JSON   5 most that are kept
-- Returns since when the job is set aside (Unix seconds, text), and 1 when that is news.
local since, news = redis.call('ZSCORE', KEYS[1], ARGV[3]), 0
if not since or tonumber(since) > tonumber(ARGV[1]) + 60 then -- in the future it was not noted by us
  since, news = ARGV[1], 1
  redis.call('ZADD', KEYS[1], since, ARGV[3])
  local count = redis.call('GET', KEYS[3]) or '0'
  if #count > 15 or not string.match(count, '^%d+$') then redis.call('DEL', KEYS[3]) end
  redis.call('INCR', KEYS[3])
end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
for _ = 1, redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[5]) do
  redis.call('HDEL', KEYS[2], redis.call('ZPOPMIN', KEYS[1])[1])
end
for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return {since, news}
