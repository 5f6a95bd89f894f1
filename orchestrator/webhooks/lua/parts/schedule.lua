-- Puts a target where its next delivery is due, not before its pause is over; one that is off or waits for nothing, nowhere.
-- `keys`: the beginning of all keys of webhooks.
local function schedule(keys, target)
  local off, pause = unpack(redis.call('HMGET', keys .. 'target:' .. target, 'off', 'pause_until'))
  local first = redis.call('ZRANGE', keys .. 'waiting:' .. target, 0, 0, 'WITHSCORES')
  if off or not first[2] then
    redis.call('ZREM', keys .. 'due', target)
  else
    redis.call('ZADD', keys .. 'due', math.max(tonumber(first[2]), tonumber(pause or '0')), target)
  end
end
