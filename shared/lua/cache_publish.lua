-- Stores a whole entry and deletes the caller's lock. Another's lock stays: the caller's had expired meanwhile, and its
-- value is as good as the other's. Notes the entry's bytes, and deletes the oldest entries where all are too large; those
-- that have expired are taken off the account.
-- KEYS 1 entry   2 lock   3 ages (sorted set of entries by time)   4 sizes (hash of entries; "total" of all)
-- ARGV 1 token   2 ttl (s)   3 entry (blob)   4 most bytes of all entries, 0 for any
-- Returns how many entries were deleted for it.
local now = tonumber(redis.call('TIME')[1])
local function forget(entry)
  local size = tonumber(redis.call('HGET', KEYS[4], entry)) or 0
  redis.call('HDEL', KEYS[4], entry)
  redis.call('ZREM', KEYS[3], entry)
  return redis.call('HINCRBY', KEYS[4], 'total', string.format('%d', -size))
end
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[2])
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
for _, key in ipairs({{KEYS[3], 'zset'}, {KEYS[4], 'hash'}}) do
  local kind = redis.call('TYPE', key[1]).ok
  if kind ~= 'none' and kind ~= key[2] then redis.call('DEL', key[1]) end
end
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - ARGV[2], 'LIMIT', 0, 10)) do forget(entry) end
forget(KEYS[1])
redis.call('HSET', KEYS[4], KEYS[1], #ARGV[3])
redis.call('ZADD', KEYS[3], now, KEYS[1])
local total, most, deleted = redis.call('HINCRBY', KEYS[4], 'total', #ARGV[3]), tonumber(ARGV[4]), 0
while most > 0 and total > most do
  local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if not oldest then break end
  redis.call('DEL', oldest)
  total, deleted = forget(oldest), deleted + 1
end
redis.call('EXPIRE', KEYS[3], ARGV[2])
redis.call('EXPIRE', KEYS[4], ARGV[2])
return deleted
