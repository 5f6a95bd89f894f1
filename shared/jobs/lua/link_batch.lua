-- Notes at a batch that another one tries its jobs again.
-- KEYS 1 batch hash of the old one
-- ARGV 1 id of the new one   2 the list that it is added to: retries, repairs (it runs what was degraded),
--      or refreshes (what is stale)
-- Returns 1, or 0 when the old one is gone.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local before = redis.call('HGET', KEYS[1], ARGV[2]) or ''
redis.call('HSET', KEYS[1], 'retried_as', ARGV[1], ARGV[2], (before == '' and '' or before .. ',') .. ARGV[1])
return 1
