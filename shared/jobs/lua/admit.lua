-- Admits the next jobs of a lane: deficit round robin over the tenants (Shreedhar and Varghese 1995). Every turn gives a
-- tenant a quantum of leaves and a job takes one quantum; the difference to its real number of leaves is booked when it
-- ends (see leave). A tenant may have as many jobs under way as there is room left (dynamic thresholds, Choudhury and
-- Hahne 1998): one alone gets half of the window, so that the first job of another tenant is admitted at once.
-- KEYS 1 ring   2 counts   3 held   4 deficit   5 under way
-- ARGV 1 ttl (s)   2 window   3 quantum (leaves)   4 lane   5 prefix of the keys of admission queues   6 most at once
-- Returns per job: id, tenant, jobs that its tenant had under way before it.
local window, quantum, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6])
local held = tonumber(redis.call('HGET', KEYS[2], 'held') or 0)
local out, passed = {}, 0
while held < window and passed < redis.call('LLEN', KEYS[1]) and #out < 3 * most do
  local tenant = redis.call('LINDEX', KEYS[1], 0)
  local queue = ARGV[5] .. tenant
  local own = tonumber(redis.call('HGET', KEYS[3], tenant) or 0)
  if redis.call('ZCARD', queue) == 0 then
    redis.call('LPOP', KEYS[1])
  elseif own >= math.max(1, window - held) then
    redis.call('RPUSH', KEYS[1], redis.call('LPOP', KEYS[1]))
    passed = passed + 1
  else
    local deficit = redis.call('HINCRBY', KEYS[4], tenant, quantum)
    if deficit > 0 then
      local id = redis.call('ZPOPMIN', queue)[1]
      redis.call('HINCRBY', KEYS[4], tenant, -quantum)
      redis.call('HSET', KEYS[5], id, ARGV[4] .. ' ' .. tenant)
      redis.call('HINCRBY', KEYS[3], tenant, 1)
      redis.call('HINCRBY', KEYS[2], 'waiting', -1)
      held = redis.call('HINCRBY', KEYS[2], 'held', 1)
      out[#out + 1], out[#out + 2], out[#out + 3] = id, tenant, own
      passed = 0
    end
    redis.call('LPOP', KEYS[1])
    if redis.call('ZCARD', queue) > 0 then redis.call('RPUSH', KEYS[1], tenant) end
  end
end
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], ARGV[1]) end
return out
