-- planning -> indexing. Item 0 is the walk over the roots, which is sent at once, or the hand-over of documents by a client,
-- open until that closes it. A retry begins with the items that the old job had left instead.
-- KEYS 1 job hash   2 leaves hash   3 events stream   4 work hash   5 inbox hash   6 line
-- ARGV 1 now   2 ttl (s)   3 max events   4 what item 0 is: walk, hand_over or left   5 most items at workers
--      6... what is left: item, blob
-- Returns {1, items that are to be sent...}; {0} when the job is not planning (any more).
-- with emit
-- with next_items
-- with states
-- with while_open
local state, deadline_s = unpack(redis.call('HMGET', KEYS[1], 'state', 'deadline_s'))
if not may_become(state, 'indexing') then return {0} end
local open = 1
if ARGV[4] == 'left' then
  open = 0
  for i = 6, #ARGV, 2 do
    redis.call('HSET', KEYS[5], ARGV[i], ARGV[i + 1])
    redis.call('HSET', KEYS[2], ARGV[i], 'waiting')
    redis.call('RPUSH', KEYS[6], ARGV[i])
    open = open + 1
  end
elseif ARGV[4] == 'walk' then
  redis.call('HSET', KEYS[2], '0', 'waiting')
  redis.call('RPUSH', KEYS[6], '0')
else
  redis.call('HSET', KEYS[2], '0', 'open')
  redis.call('HSET', KEYS[4], 'sent:0', ARGV[1])
end
redis.call('HSET', KEYS[1], 'state', 'indexing', 'indexing_at', ARGV[1], 'updated_at', ARGV[1],
  'leaves_total', open, 'leaves_done', 0, 'leaves_failed', 0, 'open', open)
emit(KEYS[3], ARGV[3], 'type', 'state', 'state', 'indexing')
local out = next_items(KEYS[2], KEYS[4], KEYS[6], open, tonumber(ARGV[5]), ARGV[1])
for i = 1, 6 do redis.call('EXPIRE', KEYS[i], while_open(ARGV[2], deadline_s)) end
return {1, unpack(out)}
