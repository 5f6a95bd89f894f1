-- Reserves a call on a budget before it is made, at once or not at all. The same for a job and for a batch: its
-- hash has the limits (budget:max_calls, budget:max_tokens, budget:max_cost in billionths, budget:max_seconds), what is
-- spent (budget:calls, budget:tokens, budget:cost) and each reservation under way (hold:<id>). Repeating it changes
-- nothing.
-- KEYS 1 job or batch hash
-- ARGV 1 now   2 hold id   3 calls   4 tokens   5 cost (billionths)   6 1: max_seconds ends the spending (a batch's)
-- Returns {} when reserved (or when the owner is gone), else {limit, its value, what is left of it}.
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], 'hold:' .. ARGV[2]) == 1 then return {} end
local seconds, created = unpack(redis.call('HMGET', KEYS[1], 'budget:max_seconds', 'created_at'))
if ARGV[6] == '1' and seconds and tonumber(ARGV[1]) - tonumber(created) >= tonumber(seconds) then
  return {'max_seconds', seconds, '0'}
end
local names = {'calls', 'tokens', 'cost'}
for i, name in ipairs(names) do
  local limit, spent = unpack(redis.call('HMGET', KEYS[1], 'budget:max_' .. name, 'budget:' .. name))
  local want = tonumber(ARGV[i + 2])
  local left = limit and tonumber(limit) - tonumber(spent or 0)
  if limit and (want > left) then return {'max_' .. name, limit, string.format('%.0f', left)} end
end
for i, name in ipairs(names) do redis.call('HINCRBY', KEYS[1], 'budget:' .. name, ARGV[i + 2]) end
redis.call('HSET', KEYS[1], 'hold:' .. ARGV[2], ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[5])
return {}
