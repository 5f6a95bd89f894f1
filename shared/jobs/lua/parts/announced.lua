-- Notes the end of a job or of a batch in the step that ends it, where its request names a webhook, or an endpoint of its
-- tenant or of the operator (`*`) wants to hear of it. What is wrong with the keys of webhooks keeps no job from its end.
local function wants(key, event)
  for _, events in ipairs(redis.call('HVALS', key)) do
    if string.find(events, ',' .. event .. ',', 1, true) then return true end
  end
  return false
end

local function announce(like, entry, event, tenant, named, ttl)
  local keys = string.match(like, '^(.-){') .. '{webhooks}:'
  local wanted = keys .. 'wanted:'
  if (named or '') == '' and not wants(wanted .. '*', event)
    and not ((tenant or '') ~= '' and wants(wanted .. tenant, event)) then return end
  redis.call('ZADD', keys .. 'ended', 'NX', redis.call('TIME')[1], entry)
  redis.call('EXPIRE', keys .. 'ended', ttl)
end

local function announce_job(job, id, outcome, ttl, tenant, named)
  local complete = outcome == 'done' or outcome == 'degraded' or outcome == 'partial'
  announce(job, 'job:' .. id, 'job.' .. (complete and 'done' or outcome), tenant, named, ttl)
end

-- `batch`: the beginning of the batch's keys. It is done when all of its lines have been read and all jobs have ended.
local function announce_batch(batch, ttl)
  local open, known_open, closed, cancelled, tenant, named = unpack(redis.call('HMGET', batch .. 'batch', 'open',
    'known_open', 'closed_at', 'cancelled_at', 'tenant', 'webhook'))
  if (open or '0') ~= '0' or (known_open or '0') ~= '0' or not (closed or cancelled) then return end
  announce(batch, 'batch:' .. string.match(batch, '{(.*)}'), 'batch.done', tenant, named, ttl)
end
