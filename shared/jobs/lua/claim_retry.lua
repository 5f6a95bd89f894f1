-- Links an ended job to the one that tries it again. Only a caller that has seen the newest link may set the
-- next one (compare and set): of two at once one wins. The state of the old one does not change.
-- KEYS 1 job hash of the old one
-- ARGV 1 id of the new one ('': none)   2 link seen ('': none)   3 field that says what of it the new one runs again, too
--      (repaired_by: what was degraded, refreshed_by: what is stale) or ''
-- Returns 1, or 0 when the link is another one now, or the old one is gone.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if (redis.call('HGET', KEYS[1], 'retried_as') or '') ~= ARGV[2] then return 0 end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'retried_as')
else
  redis.call('HSET', KEYS[1], 'retried_as', ARGV[1])
  if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[3], ARGV[1]) end
end
return 1
