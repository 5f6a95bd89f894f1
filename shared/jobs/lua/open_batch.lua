-- Creates an empty batch, or finds the one that was opened with the same key.
-- KEYS 1 batch hash   2 list of batches   3 where the batch of this key is kept, if it has one
-- ARGV 1 batch id   2 now   3 ttl (s)   4 most batches in the list   5... field, value pairs of its hash
-- Returns the id of the batch.
if KEYS[3] then
  local first = redis.call('GET', KEYS[3])
  if first and redis.call('EXISTS', (string.gsub(KEYS[1], '{.*}', '{' .. first .. '}'))) == 1 then return first end
  redis.call('SET', KEYS[3], ARGV[1], 'EX', ARGV[3])
end
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -ARGV[4] - 1)
redis.call('EXPIRE', KEYS[2], ARGV[3])
return ARGV[1]
