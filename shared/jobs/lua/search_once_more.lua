-- What the search of a node has left cannot be read: it is searched once more, and the reaper sends it.
-- KEYS 1 leaves hash   2 candidates hash   3 work hash
-- ARGV 1 node id
-- Returns 1, also when Redis has lost the whole search; 0 for a node that is recorded, or was searched once more before.
local status = redis.call('HGET', KEYS[1], ARGV[1])
if status == 'pending' then return 1 end
if status ~= 'searched' or redis.call('HSETNX', KEYS[3], 'anew:' .. ARGV[1], '1') == 0 then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], 'sent:' .. ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], 'pending')
return 1
