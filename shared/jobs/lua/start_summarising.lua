-- merging -> summarising, with the pool in its final order.
-- KEYS 1 job hash   2 pool   3 events stream   4 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 note of the task   5 pool (blob)
--      6 names of its chunks that stand there   7... the others: name, blob
-- Returns 1, or 0 when the job is not merging (any more); -3, and nothing is changed, when a chunk is lost.
-- with note
-- with keep_chunks
if lost_chunk(KEYS[4], ARGV[6]) then return -3 end
local said, state = leave_note(KEYS[1], ARGV[2], ARGV[3], ARGV[4], 'state')
drop_mark(KEYS[1], said)
if not may_become(state, 'summarising') then
  write_job(KEYS[1], said)
  return 0
end
keep_chunks(KEYS[4], 7)
redis.call('SET', KEYS[2], ARGV[5], 'EX', ARGV[2])
write_job(KEYS[1], said, 'state', 'summarising', 'summarising_at', ARGV[1], 'updated_at', ARGV[1])
emit(KEYS[3], ARGV[3], 'type', 'state', 'state', 'summarising')
return 1
