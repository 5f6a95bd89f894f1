-- Corrects a lane's ring and counts after one of its keys was lost: the queues themselves and the hash of jobs under way
-- are the truth.
-- KEYS 1 ring   2 counts   3 held   4 under way
-- ARGV 1 ttl (s)   2 lane   3 prefix of the keys of admission queues   4 1: recount too   5... tenants with waiting jobs
-- Returns how many corrections were made.
local corrected = 0
for i = 5, #ARGV do
  if redis.call('ZCARD', ARGV[3] .. ARGV[i]) > 0 and not redis.call('LPOS', KEYS[1], ARGV[i]) then
    redis.call('RPUSH', KEYS[1], ARGV[i])
    corrected = corrected + 1
  end
end
if ARGV[4] == '1' then
  local waiting, held, own = 0, 0, {}
  for _, tenant in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    waiting = waiting + redis.call('ZCARD', ARGV[3] .. tenant)
  end
  for _, entry in ipairs(redis.call('HVALS', KEYS[4])) do
    local lane, tenant = string.match(entry, '^(%S+) (.*)$')
    if lane == ARGV[2] then own[tenant], held = (own[tenant] or 0) + 1, held + 1 end
  end
  for name, count in pairs({waiting = waiting, held = held}) do
    if tonumber(redis.call('HGET', KEYS[2], name) or 0) ~= count then
      redis.call('HSET', KEYS[2], name, count)
      corrected = corrected + 1
    end
  end
  for _, tenant in ipairs(redis.call('HKEYS', KEYS[3])) do
    if not own[tenant] then corrected = corrected + redis.call('HDEL', KEYS[3], tenant) end
  end
  for tenant, count in pairs(own) do
    if tonumber(redis.call('HGET', KEYS[3], tenant) or 0) ~= count then
      redis.call('HSET', KEYS[3], tenant, count)
      corrected = corrected + 1
    end
  end
end
for i = 1, 4 do redis.call('EXPIRE', KEYS[i], ARGV[1]) end
return corrected
