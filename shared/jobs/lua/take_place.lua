-- Takes a place among the open jobs and batches of an API key, before the job is made; what has ended leaves its place
-- when the last one is taken.
-- KEYS 1 places (sorted set)   2 open jobs
-- ARGV 1 now   2 ttl (s)   3 places   4 name of the new place   5 beginning of a place without a job yet   6 seconds
--      that such a place is held   7 beginning of the place of a batch   8, 9 beginning and end of a batch's key
-- Returns 1, or 0 when all places are taken.
local function batch_is_open(id)
  local open, closed, cancelled = unpack(redis.call('HMGET', ARGV[8] .. id .. ARGV[9], 'open', 'closed_at', 'cancelled_at'))
  return open and (tonumber(open) > 0 or not (closed or cancelled))
end

local function is_taken(place, since)
  if string.sub(place, 1, #ARGV[5]) == ARGV[5] then return tonumber(since) + tonumber(ARGV[6]) > tonumber(ARGV[1]) end
  if string.sub(place, 1, #ARGV[7]) == ARGV[7] then return batch_is_open(string.sub(place, #ARGV[7] + 1)) end
  return redis.call('ZSCORE', KEYS[2], place)
end

if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  local places = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  for i = 1, #places, 2 do
    if not is_taken(places[i], places[i + 1]) then redis.call('ZREM', KEYS[1], places[i]) end
  end
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
