-- Takes a job out of its batch that was entered but never created.
-- KEYS 1 batch hash   2 members hash
-- ARGV 1 job id
-- Returns 1 when it was taken out, 0 when it is no member, or has ended.
if redis.call('HGET', KEYS[2], ARGV[1]) ~= '' then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
for _, name in ipairs({'lines', 'enqueued', 'open'}) do redis.call('HINCRBY', KEYS[1], name, -1) end
return 1
