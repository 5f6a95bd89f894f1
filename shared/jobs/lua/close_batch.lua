-- Notes that all lines of a batch have been read.
-- KEYS 1 batch hash
-- ARGV 1 now   2 ttl (s)
-- with announced
redis.call('HSET', KEYS[1], 'closed_at', ARGV[1])
pcall(announce_batch, string.match(KEYS[1], '^(.-)batch$'), ARGV[2])
return 1
