-- Enters jobs in a batch, and counts refused questions. Entering a job again changes nothing.
-- KEYS 1 batch hash   2 members hash
-- ARGV 1 ttl (s)   2 refused   3... job ids
-- Returns how many were entered.
local entered = 0
for i = 3, #ARGV do entered = entered + redis.call('HSETNX', KEYS[2], ARGV[i], '') end
for _, name in ipairs({'enqueued', 'open'}) do redis.call('HINCRBY', KEYS[1], name, entered) end
redis.call('HINCRBY', KEYS[1], 'lines', entered + tonumber(ARGV[2]))
redis.call('HINCRBY', KEYS[1], 'rejected', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return entered
