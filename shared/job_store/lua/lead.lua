-- One reaper leads. Each time it gets a fencing token, larger than any before: what an older leader still does is refused.
-- KEYS 1 lock   2 token counter
-- ARGV 1 who   2 milliseconds
-- Returns the token, 0 while another one leads.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], token .. ' ' .. ARGV[1], 'PX', ARGV[2])
return token
