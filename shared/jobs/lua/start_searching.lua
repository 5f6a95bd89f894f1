-- planning -> searching, with the first nodes of the tree.
-- KEYS 1 job hash   2 nodes hash   3 leaves hash   4 events stream   5 work hash
-- ARGV 1 now   2 ttl (s)   3 max events   4... triples: node id, state (pending|waiting|open, or grown: a branch that
-- comes with its children), node as JSON
-- Returns 1, or 0 when the job is not planning (any more).
-- with emit
-- with states
if not may_become(redis.call('HGET', KEYS[1], 'state'), 'searching') then return 0 end
local leaves, open = 0, 0
for i = 4, #ARGV, 3 do  -- what may fail, where a key is of another type, goes first
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[5], 'sent:' .. ARGV[i], ARGV[1])
  if ARGV[i + 1] ~= 'grown' then
    open = open + 1
    if ARGV[i + 1] ~= 'open' then leaves = leaves + 1 end
  end
end
redis.call('HSET', KEYS[1], 'state', 'searching', 'searching_at', ARGV[1], 'updated_at', ARGV[1],
  'leaves_total', leaves, 'leaves_done', 0, 'leaves_failed', 0, 'open', open)
emit(KEYS[4], ARGV[3], 'type', 'state', 'state', 'searching')
for i = 4, #ARGV, 3 do emit(KEYS[4], ARGV[3], 'type', 'node', 'node', ARGV[i + 2]) end
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return 1
