-- Counts the end of a job, once in each batch that it belongs to or that names it.
-- with count
-- with states
local MOST_FAILED = 200  -- ids of jobs without an answer that a batch keeps

-- `batch`: the beginning of the batch's keys. Returns 1 when it was counted now.
local function count_in(batch, id, outcome, degraded, verdicts, ttl)
  local counted = 0
  if redis.call('HGET', batch .. 'members', id) == '' then
    add_to(batch .. 'batch', 'open', -1)
    add_to(batch .. 'batch', 'finished', 1)
    add_to(batch .. 'batch', outcome, 1)
    for reason in string.gmatch(degraded or '', '[^,]+') do
      add_to(batch .. 'batch', 'reason:' .. reason, 1)
    end
    for verdict in string.gmatch(verdicts or '', '[^,]+') do
      add_to(batch .. 'batch', 'verdict:' .. verdict, 1)
    end
    redis.call('HSET', batch .. 'members', id, outcome)
    if outcome == 'failed' or outcome == 'expired' then
      redis.call('LPUSH', batch .. 'failed', id)
      redis.call('LTRIM', batch .. 'failed', 0, MOST_FAILED - 1)
    end
    counted = 1
  end
  if redis.call('HGET', batch .. 'known', id) == '' then
    add_to(batch .. 'batch', 'known_open', -1)
    redis.call('HSET', batch .. 'known', id, outcome)
    counted = 1
  end
  for _, name in ipairs({'batch', 'members', 'lines', 'known', 'failed'}) do redis.call('EXPIRE', batch .. name, ttl) end
  return counted
end

-- To be called by who has just ended the job. A damaged batch keeps no job from its end.
local function count_end(job, ttl)
  local before, id = string.match(job, '^(.-{)(.*)}:job$')
  local named_by = before .. id .. '}:named_by'
  local state, partial, degraded, verdicts, batch_id =
    unpack(redis.call('HMGET', job, 'state', 'partial', 'degraded', 'verdicts', 'batch_id'))
  local batches = redis.pcall('SMEMBERS', named_by)
  if batches.err then batches = {} end
  if batch_id and batch_id ~= '' then batches[#batches + 1] = batch_id end
  for _, batch in ipairs(batches) do
    pcall(count_in, before .. batch .. '}:', id, outcome_of(state, partial, degraded), degraded, verdicts, ttl)
  end
  redis.call('DEL', named_by)
end
