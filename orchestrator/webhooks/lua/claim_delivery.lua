-- Takes the delivery that is due first, of a target with fewer than so many under way here. It is due again when the time
-- of this claim is over: a worker that dies with it has not lost it. A target that fails gets one try at a time.
-- KEYS 1 due
-- ARGV 1 now   2 seconds of the claim   3 how many of one target may be under way   4 JSON: target -> how many are here
-- Returns {id, target, try}, or nothing.
-- with schedule
local keys, busy = string.match(KEYS[1], '^(.*)due$'), cjson.decode(ARGV[4])
for _, target in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 100)) do
  local strikes = tonumber(redis.call('HGET', keys .. 'target:' .. target, 'strikes') or '0')
  local under_way = busy[target] or 0
  if under_way < (strikes > 0 and 1 or tonumber(ARGV[3])) then
    local waiting = keys .. 'waiting:' .. target
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', waiting, '-inf', ARGV[1], 'LIMIT', 0, 10)) do
      if redis.call('EXISTS', keys .. 'delivery:' .. id) == 1 then
        redis.call('ZADD', waiting, tonumber(ARGV[1]) + tonumber(ARGV[2]), id)
        schedule(keys, target)
        return {id, target, redis.call('HINCRBY', keys .. 'delivery:' .. id, 'tries', 1)}
      end
      redis.call('ZREM', waiting, id)
    end
    schedule(keys, target)
  end
end
return {}
