-- Keeps what the search task found for a leaf until the rerank task. Refused for a leaf that is recorded already, and
-- for a job that is no longer searching.
-- KEYS 1 job hash   2 leaves hash   3 candidates hash   4 events stream   5 work hash   6 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 node id   5 candidates (blob)   6... chunks: name, blob
-- Returns 1 when taken, else 0.
-- with emit
-- with keep_chunks
if redis.call('HGET', KEYS[1], 'state') ~= 'searching' then return 0 end
local status = redis.call('HGET', KEYS[2], ARGV[4])
if status ~= 'pending' and status ~= 'searched' then return 0 end
keep_chunks(KEYS[6], 6, ARGV[2])
redis.call('HSET', KEYS[3], ARGV[4], ARGV[5])
redis.call('HSET', KEYS[5], 'sent:' .. ARGV[4], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[4], 'searched')  -- last of what may fail
redis.call('HSET', KEYS[1], 'updated_at', ARGV[1])
emit(KEYS[4], ARGV[3], 'type', 'leaf', 'id', ARGV[4], 'status', 'searched')
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return 1
