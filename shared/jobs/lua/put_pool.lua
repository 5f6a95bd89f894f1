-- Keeps the merged pool until the root rerank; the job stays merging.
-- KEYS 1 job hash   2 pool   3 chunks hash
-- ARGV 1 now   2 ttl (s)   3 max events   4 note of the task   5 pool (blob)
--      6 names of its chunks that stand there   7... the others: name, blob
-- Returns 1 when taken, 0 when the job is not merging (any more); -3, and nothing is changed, when a chunk is lost.
-- with keep_chunks
-- with note
if lost_chunk(KEYS[3], ARGV[6]) then return -3 end
local said, state = leave_note(KEYS[1], ARGV[2], ARGV[3], ARGV[4], 'state')
drop_mark(KEYS[1], said)
if state ~= 'merging' then
  write_job(KEYS[1], said)
  return 0
end
keep_chunks(KEYS[3], 7)
redis.call('SET', KEYS[2], ARGV[5], 'EX', ARGV[2])
write_job(KEYS[1], said, 'updated_at', ARGV[1])
return 1
