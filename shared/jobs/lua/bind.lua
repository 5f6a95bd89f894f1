-- A waiting leaf gets its bound query and may be searched, once: whoever wins this claim sends it.
-- KEYS 1 job hash   2 nodes hash   3 leaves hash   4 events stream   5 work hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 node id   5 node as JSON   6... ids of the leaves that it depends on
-- Returns 1 when bound, 0 when it was bound before, a leaf that it depends on is open, or the job is not searching
-- (any more).
-- with emit
if redis.call('HGET', KEYS[1], 'state') ~= 'searching' then return 0 end
if redis.call('HGET', KEYS[3], ARGV[4]) ~= 'waiting' then return 0 end
for i = 6, #ARGV do
  local status = redis.call('HGET', KEYS[3], ARGV[i])
  if status ~= 'done' and status ~= 'failed' then return 0 end
end
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
redis.call('HSET', KEYS[5], 'sent:' .. ARGV[4], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[4], 'pending')  -- last of what may fail
redis.call('HSET', KEYS[1], 'updated_at', ARGV[1])
emit(KEYS[4], ARGV[3], 'type', 'bound', 'node', ARGV[5])
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return 1
