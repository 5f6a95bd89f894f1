-- What a task leaves with a change that it makes: its costs, its warnings, and the reasons for what it went without, in any
-- state. With `attempt` the task is at its item no more: the mark goes if it is still its own, so that no script of its
-- own has to end it. A warning that is in the list already is not added again, nor is a reason. A job that has ended gets no more
-- reasons: its batch has counted them.
-- `note`: empty, or JSON: item, cost {name: delta}, warnings, most_warnings, reasons, attempt.
-- with count
-- with emit
-- with opened
-- with states
-- A count that cannot be read starts anew at 0.
local function add_costs(job, item, costs)
  local names, deltas, sums = {}, {}, {}
  for name, delta in pairs(costs) do
    names[#names + 1], deltas[#deltas + 1] = 'cost:' .. name, delta
    if item ~= '' then names[#names + 1], deltas[#deltas + 1] = 'paid:' .. item .. ':' .. name, delta end
  end
  if #names == 0 then return end
  for i, known in ipairs(redis.call('HMGET', job, unpack(names))) do
    local sum = (tonumber(string.match(known or '', '^-?%d+$')) or 0) + deltas[i]
    sums[#sums + 1], sums[#sums + 2] = names[i], string.format('%.0f', sum)
  end
  redis.call('HSET', job, unpack(sums))
end

local function add_reasons(job, item, reasons)
  local fields, added = {'degraded', 'degraded:' .. item}, {}
  local known = redis.call('HMGET', job, unpack(fields))
  for i, field in ipairs(fields) do
    local all, there = {}, {}
    for one in string.gmatch(known[i] or '', '[^,]+') do all[#all + 1], there[one] = one, true end
    local before = #all
    for _, reason in ipairs(reasons) do
      if not there[reason] then
        all[#all + 1] = reason
        if i == 2 then added[#added + 1] = reason end
      end
    end
    table.sort(all)
    if #all > before then redis.call('HSET', job, field, table.concat(all, ',')) end
  end
  return added
end

local function add_warnings(key, warnings, most)
  local there, added = redis.pcall('LRANGE', key, 0, -1), {}
  if there.err then
    redis.call('DEL', key)
    there = {}
  end
  local known, count = {}, #there
  for _, warning in ipairs(there) do known[warning] = true end
  for _, warning in ipairs(warnings) do
    if not known[warning] and count < most then
      redis.call('RPUSH', key, warning)
      added[#added + 1], known[warning], count = warning, true, count + 1
    end
  end
  return added
end

local function leave_note(job, ttl, most_events, note)
  if note == '' then return end
  local said, of_job = cjson.decode(note), string.match(job, '^(.*)job$')
  local events, item, reasons, warnings = of_job .. 'events', said.item, {}, {}
  add_costs(job, item, said.cost)
  if #said.reasons > 0 and not TERMINAL[redis.call('HGET', job, 'state') or ''] then
    reasons = add_reasons(job, item, said.reasons)
  end
  if #said.warnings > 0 then warnings = add_warnings(of_job .. 'warnings', said.warnings, said.most_warnings) end
  if #reasons + #warnings > 0 then
    opened(events, redis.call('HGET', job, 'created_at'))
    for _, reason in ipairs(reasons) do emit(events, most_events, 'type', 'degraded', 'item', item, 'reason', reason) end
    for _, text in ipairs(warnings) do emit(events, most_events, 'type', 'warning', 'text', text, 'item', item) end
    redis.call('EXPIRE', events, ttl)
    if #warnings > 0 then redis.call('EXPIRE', of_job .. 'warnings', ttl) end
  end
  if said.attempt and redis.pcall('HGET', of_job .. 'work', 'busy:' .. item) == said.attempt then
    redis.call('HDEL', of_job .. 'work', 'busy:' .. item)
  end
end
