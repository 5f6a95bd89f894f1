-- Counts the end of a job in a batch where it was not counted: a job that is gone has expired.
-- KEYS 1 batch hash   2 job hash
-- ARGV 1 ttl (s)   2 job id
-- Returns 1 when counted, 0 when it is open, or counted before, or of no concern.
-- with counted
local state, partial, degraded, verdicts = unpack(redis.call('HMGET', KEYS[2], 'state', 'partial', 'degraded', 'verdicts'))
local outcome = outcome_of(state, partial, degraded)
if redis.call('EXISTS', KEYS[2]) == 0 then outcome = 'expired' end
if not outcome then return 0 end
return count_in(string.gsub(KEYS[1], 'batch$', ''), ARGV[2], outcome, degraded, verdicts, ARGV[1], true)
