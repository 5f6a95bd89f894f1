-- Takes a permit among the open jobs and batches of an API key, before the job is made; what has ended leaves its permit
-- when the last one is taken.
-- KEYS 1 permits (sorted set)   2 open jobs
-- ARGV 1 now   2 ttl (s)   3 permits   4 name of the new permit   5 beginning of a permit without a job yet   6 seconds
--      that such a permit is held   7 beginning of the permit of a batch   8, 9 beginning and end of a batch's key
-- Returns 1, or 0 when all permits are taken.
local function batch_is_open(id)
  local open, closed, cancelled = unpack(redis.call('HMGET', ARGV[8] .. id .. ARGV[9], 'open', 'closed_at', 'cancelled_at'))
  return open and (tonumber(open) > 0 or not (closed or cancelled))
end

local function is_taken(permit, since)
  if string.sub(permit, 1, #ARGV[5]) == ARGV[5] then return tonumber(since) + tonumber(ARGV[6]) > tonumber(ARGV[1]) end
  if string.sub(permit, 1, #ARGV[7]) == ARGV[7] then return batch_is_open(string.sub(permit, #ARGV[7] + 1)) end
  return redis.call('ZSCORE', KEYS[2], permit)
end

if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  local permits = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  for i = 1, #permits, 2 do
    if not is_taken(permits[i], permits[i + 1]) then redis.call('ZREM', KEYS[1], permits[i]) end
  end
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
