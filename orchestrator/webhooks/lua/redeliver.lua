-- Sends a delivery again, whatever became of it; its time to be tried begins anew.
-- KEYS 1 delivery hash   2 target hash   3 waiting deliveries of the target
-- ARGV 1 delivery id   2 now   3 ttl (s)
-- Returns 1, or 0 when there is no such delivery.
-- with schedule
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'state', 'waiting', 'since', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('HDEL', KEYS[2], 'pause_until')
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('EXPIRE', KEYS[3], ARGV[3])
schedule(string.match(KEYS[1], '^(.*)delivery:'), string.match(KEYS[3], 'waiting:(.*)$'))
return 1
