-- Stores a whole entry and deletes the caller's lock. Another's lock stays: the caller's had expired meanwhile, and its
-- value is as good as the other's.
-- KEYS 1 entry   2 lock
-- ARGV 1 token   2 ttl (s)   3 entry (blob)
-- Returns 1.
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[2])
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
