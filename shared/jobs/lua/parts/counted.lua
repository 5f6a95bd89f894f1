-- Counts the end of a job, once in each batch that it belongs to or that names it.
-- with announced
-- with count
-- with states
local MOST_FAILED = 200  -- ids of jobs without an answer that a batch keeps

-- A batch is kept as long as its last job: all of its keys anew when that ends, and else once half of it is over.
local function renew_batch(batch, ttl, now)
  if not now and redis.call('TTL', batch .. 'batch') >= tonumber(ttl) / 2 then return end
  for _, name in ipairs({'batch', 'members', 'lines', 'known', 'failed'}) do redis.call('EXPIRE', batch .. name, ttl) end
end

-- `batch`: the beginning of the batch's keys; `named`: it may name the job, which is another one's. Returns 1 when it was
-- counted now.
local function count_in(batch, id, outcome, degraded, verdicts, ttl, named)
  local counted = 0
  if redis.call('HGET', batch .. 'members', id) == '' then
    local deltas = {open = -1, finished = 1, [outcome] = 1}
    for reason in string.gmatch(degraded or '', '[^,]+') do deltas['reason:' .. reason] = 1 end
    for verdict in string.gmatch(verdicts or '', '[^,]+') do deltas['verdict:' .. verdict] = 1 end
    local last = add_all(batch .. 'batch', deltas).open <= 0
    redis.call('HSET', batch .. 'members', id, outcome)
    if outcome == 'failed' or outcome == 'expired' then
      redis.call('LPUSH', batch .. 'failed', id)
      redis.call('LTRIM', batch .. 'failed', 0, MOST_FAILED - 1)
      last = true
    end
    renew_batch(batch, ttl, last)
    if last then pcall(announce_batch, batch, ttl) end
    counted = 1
  end
  if named and redis.call('HGET', batch .. 'known', id) == '' then
    add_to(batch .. 'batch', 'known_open', -1)
    redis.call('HSET', batch .. 'known', id, outcome)
    renew_batch(batch, ttl, true)
    pcall(announce_batch, batch, ttl)
    counted = 1
  end
  return counted
end

-- To be called by who has just ended the job, with how it ended, its tenant and webhook. A damaged batch keeps no job from
-- its end.
local function count_end(job, ttl, batch_id, outcome, degraded, verdicts, tenant, webhook)
  local before, id = string.match(job, '^(.-{)(.*)}:job$')
  local named_by = before .. id .. '}:named_by'
  local batches = redis.pcall('SMEMBERS', named_by)
  if batches.err or #batches > 0 then redis.call('DEL', named_by) end
  if batches.err then batches = {} end
  local named = #batches
  if batch_id and batch_id ~= '' then batches[named + 1] = batch_id end
  for i, batch in ipairs(batches) do
    pcall(count_in, before .. batch .. '}:', id, outcome, degraded, verdicts, ttl, i <= named)
  end
  pcall(announce_job, job, id, outcome, ttl, tenant, webhook)
end
