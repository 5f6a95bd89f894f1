-- Leaves for what the search left open, once a job, when all its nodes have ended: whoever wins this claim sends them.
-- The job goes on searching; the last of these leaves starts the merge. What was claimed and not sent, the reaper sends.
-- KEYS 1 job hash   2 nodes hash   3 leaves hash   4 events stream   5 work hash
-- ARGV 1 now   2 ttl (s)   3 max events   4... triples: node id, state (pending), node as JSON
-- Returns 1 when the leaves are new, 0 when there was such a round, a node is open, or the job is not searching (any more).
-- with count
-- with emit
local state, open, round = unpack(redis.call('HMGET', KEYS[1], 'state', 'open', 'round'))
if state ~= 'searching' or round or open ~= '0' then return 0 end
local nodes, states, sent = {}, {}, {}
for i = 4, #ARGV, 3 do
  nodes[#nodes + 1], nodes[#nodes + 2] = ARGV[i], ARGV[i + 2]
  states[#states + 1], states[#states + 2] = ARGV[i], ARGV[i + 1]
  sent[#sent + 1], sent[#sent + 2] = 'sent:' .. ARGV[i], ARGV[1]
end
redis.call('HSET', KEYS[2], unpack(nodes))  -- what may fail, where a key is of another type, goes first
redis.call('HSET', KEYS[5], unpack(sent))
redis.call('HSET', KEYS[3], unpack(states))
add_to(KEYS[1], 'leaves_total', #states / 2)
redis.call('HSET', KEYS[1], 'round', ARGV[1], 'open', #states / 2, 'updated_at', ARGV[1])
for i = 4, #ARGV, 3 do emit(KEYS[4], ARGV[3], 'type', 'node', 'node', ARGV[i + 2]) end
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return 1
