-- A branch claims its children, once: a branch delivered twice must not count them twice. A branch that could not be
-- refined comes back as a leaf, under its own id.
-- KEYS 1 job hash   2 nodes hash   3 leaves hash   4 events stream   5 work hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 branch id   5... triples: node id, state (pending|waiting|open),
-- node as JSON
-- Returns 1 when the children are new, 0 when the branch has grown before or the job is not searching (any more).
-- with count
-- with emit
if redis.call('HGET', KEYS[1], 'state') ~= 'searching' then return 0 end
if redis.call('HGET', KEYS[3], ARGV[4]) ~= 'open' then return 0 end
local leaves, open = 0, -1
for i = 5, #ARGV, 3 do  -- what may fail, where a key is of another type, goes first
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
  redis.call('HSET', KEYS[5], 'sent:' .. ARGV[i], ARGV[1])
end
redis.call('HSET', KEYS[3], ARGV[4], 'grown')
for i = 5, #ARGV, 3 do
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  emit(KEYS[4], ARGV[3], 'type', 'node', 'node', ARGV[i + 2])
  open = open + 1
  if ARGV[i + 1] ~= 'open' then leaves = leaves + 1 end
end
add_to(KEYS[1], 'leaves_total', leaves)
add_to_open(KEYS[1], KEYS[3], open)
redis.call('HSET', KEYS[1], 'updated_at', ARGV[1])
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return 1
