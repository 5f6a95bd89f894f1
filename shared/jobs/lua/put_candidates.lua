-- Keeps what the search task found for a leaf until the rerank task. Refused for a leaf that is recorded already, and
-- for a job that is no longer searching.
-- KEYS 1 job hash   2 leaves hash   3 candidates hash   4 events stream   5 work hash   6 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 note of the task   5 node id   6 candidates (blob)
--      7 names of its chunks that stand there   8... the others: name, blob
-- Returns 1 when taken, else 0; -3, and nothing is changed, when a chunk is lost.
-- with note
-- with keep_chunks
if lost_chunk(KEYS[6], ARGV[7]) then return -3 end
local said, state = leave_note(KEYS[1], ARGV[2], ARGV[3], ARGV[4], 'state')
write_job(KEYS[1], said)
local status = state == 'searching' and redis.call('HGET', KEYS[2], ARGV[5])
if status ~= 'pending' then drop_mark(KEYS[1], said) end
if status ~= 'pending' and status ~= 'searched' then return 0 end
keep_chunks(KEYS[6], 8)
redis.call('HSET', KEYS[3], ARGV[5], ARGV[6])
-- The first result of a search ends all attempts at it, whoever's.
local ended = status == 'pending' and said.attempt and {'busy:' .. ARGV[5], ''} or {}
redis.call('HSET', KEYS[5], 'sent:' .. ARGV[5], ARGV[1], unpack(ended))
redis.call('HSET', KEYS[2], ARGV[5], 'searched')  -- last of what may fail
emit(KEYS[4], ARGV[3], 'type', 'leaf', 'id', ARGV[5], 'status', 'searched')
return 1
