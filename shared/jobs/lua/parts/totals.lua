-- Adds a job that has just ended to the totals of all jobs: outcome, wait, time of its run, reasons, costs, documents.
-- `found`: the fields OF_ENDED of its hash, which the script reads with its own.
-- with count
-- with told
local OF_ENDED = {'lane', 'created_at', 'admitted_at', 'ingest:files', unpack(TOLD)}

local function within(bounds, seconds)
  for _, bound in ipairs(bounds) do
    if seconds <= bound then return string.format('%g', bound) end
  end
  return 'inf'
end

local function add_time(sums, name, bounds, seconds)
  sums[name .. ':' .. within(bounds, seconds)] = 1
  sums['us:' .. name] = math.floor(1e6 * math.max(0, seconds))
end

local function to_totals(found, now, ttl, outcome, degraded)
  local sums, lane = {}, string.match(found[1] or '', '^%l+$') or 'unknown'
  local kind = found[4] and 'ingest' or 'question'
  local ended = 'ended:' .. lane .. ':' .. kind .. ':' .. outcome
  local created, admitted = tonumber(found[2]), tonumber(found[3])
  sums[ended] = 1
  if created and admitted then
    add_time(sums, 'waited:' .. lane, WAITED_S, admitted - created)
    add_time(sums, 'ran:' .. lane .. ':' .. kind, RAN_S, now - admitted)
  end
  for reason in string.gmatch(degraded or '', '[%l_]+') do sums['degraded:' .. reason] = 1 end
  for i, name in ipairs(TOLD) do
    local by = tonumber(string.match(found[4 + i] or '', '^%d+$'))
    if by and by > 0 then sums[name] = by end
  end
  local first = add_all(TOTALS, sums)[ended] == 1
  if kind == 'ingest' and outcome ~= 'cancelled' then redis.call('HSET', TOTALS, 'ingest:last', math.floor(now)) end
  if first then redis.call('EXPIRE', TOTALS, ttl) end  -- the workers' heartbeats renew it
end
