-- Notes that a batch is cancelled, if not all of its lines had been read: from then on it takes no more.
-- KEYS 1 batch hash
-- ARGV 1 now   2 ttl (s)
-- Returns 1, or 0 when all lines had been read or there is no such batch.
-- with announced
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], 'closed_at') == 1 then return 0 end
redis.call('HSETNX', KEYS[1], 'cancelled_at', ARGV[1])
pcall(announce_batch, string.match(KEYS[1], '^(.-)batch$'), ARGV[2])
return 1
