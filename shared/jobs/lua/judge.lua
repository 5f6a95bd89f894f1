-- Notes what a person says of an answer, or of documents that it shows. Said again, the last word counts.
-- KEYS 1 job hash   2 sorted set of the tenant's judged answers
-- ARGV 1 now   2 ttl (s)   3 job id   4... field, value
-- Returns 1, or 0 when the job is gone or has no answer.
if redis.call('HGET', KEYS[1], 'state') ~= 'done' then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return 1
