-- One task does what a job's state waits for (it may cost money). The same claimant may claim again, another one when the
-- claim is stale.
-- KEYS 1 job hash
-- ARGV 1 now   2 claimant   3 stale after (s)   4 state   5 name of the claim
-- Returns 1 when the claimant may do it, else 0.
local state, claim, since = unpack(redis.call('HMGET', KEYS[1], 'state', 'claim:' .. ARGV[5], 'updated_at'))
if state ~= ARGV[4] then return 0 end
if claim and claim ~= ARGV[2] and tonumber(ARGV[1]) - (tonumber(since) or 0) < tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], 'claim:' .. ARGV[5], ARGV[2], 'updated_at', ARGV[1])
return 1
