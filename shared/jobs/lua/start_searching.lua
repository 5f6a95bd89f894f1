-- planning -> searching, with the first nodes of the tree.
-- KEYS 1 job hash   2 nodes hash   3 leaves hash   4 events stream   5 work hash   6 candidates hash   7 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4... triples: node id, state (pending|waiting|open, or grown: a branch that
-- comes with its children), node as JSON
-- Returns 1, or 0 when the job is not planning (any more).
-- with emit
-- with states
-- with while_open
local state, deadline_s = unpack(redis.call('HMGET', KEYS[1], 'state', 'deadline_s'))
if not may_become(state, 'searching') then return 0 end
local leaves, open, nodes, states, sent, told = 0, 0, {}, {}, {}, {}
for i = 4, #ARGV, 3 do
  nodes[#nodes + 1], nodes[#nodes + 2] = ARGV[i], ARGV[i + 2]
  states[#states + 1], states[#states + 2] = ARGV[i], ARGV[i + 1]
  told[#told + 1] = ARGV[i + 2]
  sent[#sent + 1], sent[#sent + 2] = 'sent:' .. ARGV[i], ARGV[1]
  if ARGV[i + 1] ~= 'grown' then
    open = open + 1
    if ARGV[i + 1] ~= 'open' then leaves = leaves + 1 end
  end
end
if #nodes > 0 then  -- what may fail, where a key is of another type, goes first
  redis.call('HSET', KEYS[2], unpack(nodes))
  redis.call('HSET', KEYS[3], unpack(states))
  redis.call('HSET', KEYS[5], unpack(sent))
end
for i = 6, 7 do redis.call('HSET', KEYS[i], '', '') end  -- so that their TTL is set once
redis.call('HSET', KEYS[1], 'state', 'searching', 'searching_at', ARGV[1], 'updated_at', ARGV[1],
  'leaves_total', leaves, 'leaves_done', 0, 'leaves_failed', 0, 'open', open)
emit(KEYS[4], ARGV[3], 'type', 'state', 'state', 'searching')
if #told > 0 then emit(KEYS[4], ARGV[3], 'type', 'nodes', 'nodes', '[' .. table.concat(told, ',') .. ']') end
for i = 2, 7 do redis.call('EXPIRE', KEYS[i], while_open(ARGV[2], deadline_s)) end
return 1
