-- What has ended is tried again as another one. Whoever has seen the newest such link may set the next: of two that try
-- at once one wins. The old one stays as it ended.
-- KEYS 1 job or batch hash of the old one
-- ARGV 1 id of the new one ('': none)   2 link seen ('': none)
-- Returns 1, or 0 when the link is another one now, or the old one is gone.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if (redis.call('HGET', KEYS[1], 'retried_as') or '') ~= ARGV[2] then return 0 end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'retried_as')
else
  redis.call('HSET', KEYS[1], 'retried_as', ARGV[1])
end
return 1
