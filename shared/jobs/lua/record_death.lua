-- Counts the death of an item's worker once, and keeps the attempt as evidence. Frees what the worker had claimed.
-- KEYS 1 job hash   2 work hash
-- ARGV 1 ttl (s)   2 item   3 attempt of the dead worker   4 claim of the task, or ''   5 1: another worker has begun since
--      6 1: the worker was at nothing else
-- Returns how many workers have died at the item; -1 when this death was counted before.
-- with count
local proof = redis.call('HGET', KEYS[2], 'proof:' .. ARGV[2])
for attempt in string.gmatch(proof or '', '[^\n]+') do
  if attempt == ARGV[3] then return -1 end
end
if ARGV[5] ~= '1' then
  if redis.call('HGET', KEYS[2], 'busy:' .. ARGV[2]) ~= ARGV[3] then return -1 end
  redis.call('HDEL', KEYS[2], 'busy:' .. ARGV[2])
end
redis.call('HSET', KEYS[2], 'proof:' .. ARGV[2], (proof and proof .. '\n' or '') .. ARGV[3])
if ARGV[4] ~= '' then redis.call('HDEL', KEYS[1], 'claim:' .. ARGV[4]) end
if ARGV[6] == '1' then add_to(KEYS[2], 'alone:' .. ARGV[2], 1) end
redis.call('EXPIRE', KEYS[2], ARGV[1])
return add_to(KEYS[2], 'dead:' .. ARGV[2], 1)
