-- What has ended is tried again as another one: noted at the old one, which stays as it ended.
-- KEYS 1 job or batch hash of the old one   2 events stream of the old job (none for a batch)
-- ARGV 1 ttl (s)   2 max events   3 id of the new one
-- Returns 1, or 0 when the old one is gone.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'retried_as', ARGV[3])
if KEYS[2] then
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'type', 'retried', 'as', ARGV[3])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
end
return 1
