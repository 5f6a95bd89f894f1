-- Notes in an admitted job that it is under way, with the priority of its messages.
-- KEYS 1 job hash
-- ARGV 1 now   2 priority
-- Returns 1, 0 when the job is not queued (any more), -1 when it has ended or is gone.
-- with states
local state = redis.call('HGET', KEYS[1], 'state')
if not state or TERMINAL[state] then return -1 end
redis.call('HSET', KEYS[1], 'rank', ARGV[2])
if state ~= 'queued' then return 0 end
redis.call('HSET', KEYS[1], 'admitted_at', ARGV[1], 'updated_at', ARGV[1])
return 1
