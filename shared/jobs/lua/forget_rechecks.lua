-- Takes answers off those that are to be held against changed documents. One that was noted again meanwhile stays.
-- KEYS 1 sorted set of such answers -> when each was noted last
-- ARGV 1... time of the note that is done with, job id
for i = 1, #ARGV, 2 do
  if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i + 1])) == tonumber(ARGV[i]) then
    redis.call('ZREM', KEYS[1], ARGV[i + 1])
  end
end
