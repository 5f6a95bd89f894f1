-- Adds to a job's costs, warnings and reasons, in any state; a job that is gone stays gone.
-- KEYS 1 job hash
-- ARGV 1 ttl (s)   2 max events   3 note (see its part)
-- Returns 1, or 0 when the job is unknown.
-- with note
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local said = leave_note(KEYS[1], ARGV[1], ARGV[2], ARGV[3], 'state')
write_job(KEYS[1], said)
return 1
