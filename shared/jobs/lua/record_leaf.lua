-- A leaf's outcome is recorded once, by its id; repeats and late results change nothing.
-- KEYS 1 job hash   2 leaves hash   3 results hash   4 events stream   5 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 note of the task   5 node id   6 status (done|failed)   7 hits   8 error
--      9 score of the best hit ('': none)   10 result (blob)   11 names of its chunks that stand there
--      12... the others: name, blob
-- Returns the number of nodes still open (0: the merge may run), -1 when recorded before, -2 when the job is not
-- searching (any more) or does not know the leaf; -3, and nothing is changed, when a chunk is lost.
-- with count
-- with note
-- with keep_chunks
-- with while_open
if lost_chunk(KEYS[5], ARGV[11]) then return -3 end
local counted = 'leaves_' .. ARGV[6]
local said, state, open, number, deadline_s =
  leave_note(KEYS[1], ARGV[2], ARGV[3], ARGV[4], 'state', 'open', counted, 'deadline_s')
local status = state == 'searching' and redis.call('HGET', KEYS[2], ARGV[5])
local lost = status == 'waiting' and ARGV[6] == 'failed'  -- its record is lost: nobody can bind it
if status ~= 'pending' and status ~= 'searched' and not lost then
  write_job(KEYS[1], said)
  drop_mark(KEYS[1], said)
  return (status == 'done' or status == 'failed') and -1 or -2
end
keep_chunks(KEYS[5], 12)  -- first: these two may fail, where a key is of another type
redis.call('HSET', KEYS[3], ARGV[5], ARGV[10])
redis.call('HSET', KEYS[2], ARGV[5], ARGV[6])
-- The first of its kind may have created the hash.
if (tonumber(number) or 0) == 0 then redis.call('EXPIRE', KEYS[3], while_open(ARGV[2], deadline_s)) end
emit(KEYS[4], ARGV[3], 'type', 'leaf', 'id', ARGV[5], 'status', ARGV[6], 'hits', ARGV[7], 'error', ARGV[8],
  'score', ARGV[9])
-- Nothing is left to do for whoever is at it.
if said.attempt then redis.call('HDEL', string.gsub(KEYS[1], 'job$', 'work'), 'busy:' .. ARGV[5]) end
if not (string.match(open or '', '^%d+$') and string.match(number or '', '^%d+$')) then
  add_to(KEYS[1], counted, 1)
  write_job(KEYS[1], said, 'updated_at', ARGV[1])
  return add_to_open(KEYS[1], KEYS[2], -1)
end
write_job(KEYS[1], said, 'open', open - 1, counted, number + 1, 'updated_at', ARGV[1])
return open - 1
