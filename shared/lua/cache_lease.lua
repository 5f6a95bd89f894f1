-- Renews the lease of a lock, or deletes the lock, if it is still the caller's.
-- KEYS 1 lock
-- ARGV 1 token   2 lease (ms), 0 to delete the lock
-- Returns 1 when it was the caller's, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
