-- Replaces the reservation of a call by what it has really used, once.
-- KEYS 1 job or batch hash
-- ARGV 1 hold id   2 calls   3 tokens   4 cost (billionths)
-- Returns 1, or 0 when nothing is reserved under that id (any more).
local held = redis.call('HGET', KEYS[1], 'hold:' .. ARGV[1])
if not held then return 0 end
redis.call('HDEL', KEYS[1], 'hold:' .. ARGV[1])
local place = 2
for amount in string.gmatch(held, '%S+') do
  local name = ({'calls', 'tokens', 'cost'})[place - 1]
  redis.call('HINCRBY', KEYS[1], 'budget:' .. name, string.format('%.0f', tonumber(ARGV[place]) - tonumber(amount)))
  place = place + 1
end
return 1
