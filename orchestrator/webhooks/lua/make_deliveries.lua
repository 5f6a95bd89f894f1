-- Makes the deliveries of one ended job or batch, which is taken off the list in the same step. A delivery that was made
-- before stays as it is.
-- KEYS 1 ended
-- ARGV 1 the entry   2 now   3 ttl (s)   4 JSON: of each delivery its id, target, tenant (or *), url, event, subject, the
--      beginning and the end of its body, between which its number stands   5 deliveries that the log of a tenant keeps
-- with schedule
local keys = string.match(KEYS[1], '^(.*)ended$')
for _, row in ipairs(cjson.decode(ARGV[4])) do
  local id, target, tenant, url, event, subject, head, tail = unpack(row)
  local delivery, log = keys .. 'delivery:' .. id, keys .. 'log:' .. tenant
  if redis.call('EXISTS', delivery) == 0 then
    local number = redis.call('HINCRBY', keys .. 'target:' .. target, 'number', 1)
    redis.call('HSET', delivery, 'target', target, 'tenant', tenant, 'url', url, 'event', event, 'subject', subject,
      'number', number, 'body', head .. string.format('%.0f', number) .. tail, 'state', 'waiting', 'tries', 0,
      'created_at', ARGV[2], 'since', ARGV[2])
    redis.call('EXPIRE', delivery, ARGV[3])
    redis.call('ZADD', keys .. 'waiting:' .. target, ARGV[2], id)
    redis.call('EXPIRE', keys .. 'waiting:' .. target, ARGV[3])
    if redis.call('HEXISTS', keys .. 'target:' .. target, 'events') == 0 then
      redis.call('EXPIRE', keys .. 'target:' .. target, ARGV[3])
    end
    redis.call('ZADD', log, ARGV[2], id)
    redis.call('ZREMRANGEBYRANK', log, 0, -1 - tonumber(ARGV[5]))
    redis.call('EXPIRE', log, ARGV[3])
    schedule(keys, target)
    redis.call('EXPIRE', keys .. 'due', ARGV[3])
  end
end
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
