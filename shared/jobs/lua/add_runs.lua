-- Adds what a process has counted to the totals, and renews their TTL.
-- KEYS 1 hash of what processes count   2 hash of ended jobs
-- ARGV 1 ttl (s)   2... name, by
-- Returns 1.
-- with count
local sums = {}
for i = 2, #ARGV, 2 do sums[ARGV[i]] = tonumber(ARGV[i + 1]) end
if next(sums) then add_all(KEYS[1], sums) end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return 1
