-- Notes which documents an ended answer is stale by, and which no longer. Repeatable.
-- KEYS 1 job hash   2 events stream   3 sorted set of the tenant's stale answers
-- ARGV 1 now   2 ttl (s)   3 max events   4 job id   5 most documents that are noted   6 number of the following
--      7+... document id, mark as JSON   then ids of documents by which it is not stale (any more)
-- Returns 1 when it has become stale by a further document, -1 when it is stale by none any more, else 0.
-- with emit
if redis.call('HGET', KEYS[1], 'state') ~= 'done' then return 0 end
local known, count = {}, 0
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(name, 1, 6) == 'stale:' then known[name], count = true, count + 1 end
end
local before, added, first = count, 0, 7 + 2 * ARGV[6]
for i = first, #ARGV do
  local name = 'stale:' .. ARGV[i]
  if known[name] then
    redis.call('HDEL', KEYS[1], name)
    known[name], count = nil, count - 1
  end
end
for i = 7, first - 1, 2 do
  local name = 'stale:' .. ARGV[i]
  if known[name] or count < tonumber(ARGV[5]) then
    if not known[name] then known[name], count, added = true, count + 1, added + 1 end
    redis.call('HSET', KEYS[1], name, ARGV[i + 1])
  end
end
redis.call('HSET', KEYS[1], 'stale', count)
if count > 0 then
  redis.call('ZADD', KEYS[3], 'NX', ARGV[1], ARGV[4])
  redis.call('EXPIRE', KEYS[3], ARGV[2])
else
  redis.call('ZREM', KEYS[3], ARGV[4])
end
if added == 0 and (count > 0 or before == 0) then return 0 end
emit(KEYS[2], ARGV[3], 'type', 'stale', 'documents', count)
redis.call('EXPIRE', KEYS[2], ARGV[2])
return count > 0 and 1 or -1
