-- A leaf's outcome is recorded once, by its id; repeats and late results change nothing.
-- KEYS 1 job hash   2 leaves hash   3 results hash   4 candidates hash   5 events stream
--      6 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 node id   5 status (done|failed)   6 result (blob)   7 hits   8 error
--      9... chunks: name, blob
-- Returns the number of nodes still open (0: the merge may run), -1 when recorded before, -2 when the job is not
-- searching (any more) or does not know the leaf.
-- with count
-- with emit
-- with keep_chunks
if redis.call('HGET', KEYS[1], 'state') ~= 'searching' then return -2 end
local status = redis.call('HGET', KEYS[2], ARGV[4])
if status == 'done' or status == 'failed' then return -1 end
local lost = status == 'waiting' and ARGV[5] == 'failed'  -- its record is lost: nobody can bind it
if status ~= 'pending' and status ~= 'searched' and not lost then return -2 end
keep_chunks(KEYS[6], 9, ARGV[2])  -- first: these two may fail, where a key is of another type
redis.call('HSET', KEYS[3], ARGV[4], ARGV[6])
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
redis.pcall('HDEL', KEYS[4], ARGV[4])
add_to(KEYS[1], 'leaves_' .. ARGV[5], 1)
redis.call('HSET', KEYS[1], 'updated_at', ARGV[1])
emit(KEYS[5], ARGV[3], 'type', 'leaf', 'id', ARGV[4], 'status', ARGV[5],
  'hits', ARGV[7], 'error', ARGV[8])
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
return add_to_open(KEYS[1], KEYS[2], -1)
