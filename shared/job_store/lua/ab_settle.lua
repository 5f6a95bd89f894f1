-- A shadow run is over: it is taken from the open ones, and counted and kept once.
-- KEYS 1 open runs   2 comparisons   3 counts
-- ARGV 1 shadow id   2 ttl (s)   3 name to count   4 comparisons to keep   5 comparison (blob; '' for none)
-- Returns 1, or 0 when it was settled before.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
if ARGV[5] ~= '' then
  redis.call('LPUSH', KEYS[2], ARGV[5])
  redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[4]) - 1)
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
redis.call('HINCRBY', KEYS[3], ARGV[3], 1)
redis.call('EXPIRE', KEYS[3], ARGV[2])
return 1
